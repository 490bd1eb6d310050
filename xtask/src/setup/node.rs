//! Viewers of profiles, Grafana's own types of dashboards, and a server that answers as Azure does, as
//! npm has them: tests have them read what we write.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{command, workspace};

/// speedscope; a page for it without a screen, in the last release for Debian 12's node; the
/// loader of the Firefox Profiler; Grafana's types, and the compiler that holds a dashboard
/// against them; Azurite, to which tests of the fleet write. Each by its name and as npm is asked for it.
const PACKAGES: [(&str, &str); 6] = [
    ("speedscope", "speedscope"),
    ("jsdom", "jsdom@24"),
    (
        "@firefox-devtools/profiler-cli",
        "@firefox-devtools/profiler-cli",
    ),
    ("@grafana/schema", "@grafana/schema@13"),
    ("typescript", "typescript@5"),
    ("azurite", "azurite@3"),
];

/// Prepares `node/` in the target directory when it is not there. What fails here is not an
/// error: the test that needs it then does not run, and says so.
pub(crate) fn prepare() {
    let folder = workspace::target_dir().join("node");
    let modules = folder.join("node_modules");
    if PACKAGES.iter().all(|(name, _)| modules.join(name).exists()) {
        return;
    }
    let packages = PACKAGES.map(|(name, _)| name).join(", ");
    eprintln!(
        "set-up: installs {packages} into {}: tests ask them about profiles, dashboards and buckets",
        folder.display()
    );
    if let Err(error) = install(&folder) {
        eprintln!("set-up: no {packages} for tests: {error:#}");
    }
}

fn install(folder: &Path) -> Result<()> {
    ensure!(command::find("npm").is_some(), "there is no npm here");
    std::fs::create_dir_all(folder)?;
    command::run(
        Command::new("npm")
            .args([
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
            ])
            .arg(folder)
            .args(PACKAGES.map(|(_, wanted)| wanted)),
    )
}
