//! A Python of our own with DuckDB and pandas: a test reads a bundle with them. And with
//! what decodes pprof files and OTLP, checks JSON against a schema and manifests against those of
//! Kubernetes, reads YAML, HCL and kickstart files, runs Ansible, and asks a server all sorts of things
//! that its OpenAPI document allows or forbids.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::{command, workspace};

const PACKAGES: &[&str] = &[
    "ansible-core",
    "duckdb",
    "jsonschema",
    "kubernetes-validate",
    "opentelemetry-proto",
    "pandas",
    "protobuf",
    "pyarrow",
    "pykickstart",
    "python-hcl2",
    "pyyaml",
    "schemathesis",
];

/// What these packages are called when they are used.
const MODULES: &str = "ansible, duckdb, jsonschema, kubernetes_validate, pandas, google.protobuf, pyarrow, pykickstart, hcl2, opentelemetry.proto, schemathesis, yaml";

/// Prepares `python/` in the target directory when it is not there. What fails here is
/// not an error: the test that needs it then does not run, and says so.
pub(crate) fn prepare() {
    let folder = workspace::target_dir().join("python");
    if has(&folder, MODULES) {
        return;
    }
    eprintln!(
        "set-up: installs {} into {}: tests read bundles and profiles with them",
        PACKAGES.join(", "),
        folder.display()
    );
    if let Err(error) = install(&folder, PACKAGES) {
        eprintln!("set-up: no Python for tests: {error:#}");
    }
}

/// Whether a Python has these modules.
pub(super) fn has(folder: &Path, modules: &str) -> bool {
    Command::new(folder.join("bin/python"))
        .args(["-c", &format!("import {modules}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Makes a Python with these packages.
pub(super) fn install(folder: &Path, packages: &[&str]) -> Result<()> {
    ensure!(
        command::find("python3").is_some(),
        "there is no python3 here"
    );
    command::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(folder),
    )?;
    let pip = ["-m", "pip", "install", "--quiet"];
    command::run(
        Command::new(folder.join("bin/python"))
            .args(pip)
            .args(packages),
    )
}
