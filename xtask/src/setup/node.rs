//! speedscope as npm has it: a test checks our files against the format that it ships.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{command, workspace};

const PACKAGE: &str = "speedscope";

/// Prepares `node/` in the target directory when it is not there. What fails here is not an
/// error: the test that needs it then does not run, and says so.
pub(crate) fn prepare() {
    let folder = workspace::target_dir().join("node");
    if folder.join("node_modules").join(PACKAGE).exists() {
        return;
    }
    eprintln!(
        "set-up: installs {PACKAGE} into {}: a test asks it about profiles",
        folder.display()
    );
    if let Err(error) = install(&folder) {
        eprintln!("set-up: no {PACKAGE} for tests: {error:#}");
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
            .arg(PACKAGE),
    )
}
