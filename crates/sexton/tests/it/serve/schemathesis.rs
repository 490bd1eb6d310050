//! schemathesis asks all that the OpenAPI document allows, and what it forbids.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Server, fixture};

/// The interpreter that `cargo xtask test setup` prepares.
fn python() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let python = target.join("python/bin/python");
    let imports = Command::new(&python)
        .args(["-c", "import schemathesis"])
        .output();
    match imports {
        Ok(output) if output.status.success() => python,
        Ok(_) => {
            panic!("sexton-missing: python: it has no schemathesis; run cargo xtask test setup")
        }
        Err(_) => panic!("sexton-missing: python: none was prepared; run cargo xtask test setup"),
    }
}

#[test]
fn schemathesis_finds_nothing() {
    let python = python();
    let server = Server::over(&fixture("6.18-debian12/churn-shell-loop"));
    server.wait_until_read();
    let folder = tempfile::tempdir().unwrap();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/serve/schemathesis.toml");
    let url = format!("http://{}", server.address);
    let run = Command::new(python.with_file_name("schemathesis"))
        .arg("--config-file")
        .arg(config)
        .args(["run", &format!("{url}/openapi.json"), "--url", &url])
        .args([
            "--max-examples",
            "10",
            "--continue-on-failure",
            "--no-color",
        ])
        .args(["--phases", "examples,coverage,fuzzing", "--seed", "1"])
        .current_dir(folder.path())
        .output()
        .expect("schemathesis runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}");
    assert!(server.is_well());
}
