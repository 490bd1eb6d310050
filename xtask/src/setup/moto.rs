//! A Python with moto, which answers as S3 does: tests of the fleet write to it. It is apart from
//! the other Python, because it brings many packages of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::{command, workspace};

/// Prepares `python-moto/` in the target directory when it is not there. What fails here is
/// not an error: the test that needs it then does not run, and says so.
pub(crate) fn prepare() {
    let folder = workspace::target_dir().join("python-moto");
    if is_ready(&folder) {
        return;
    }
    eprintln!(
        "set-up: installs moto into {}: tests of the fleet write to its S3",
        folder.display()
    );
    if let Err(error) = install(&folder) {
        eprintln!("set-up: no S3 for tests: {error:#}");
    }
}

fn is_ready(folder: &Path) -> bool {
    Command::new(folder.join("bin/python"))
        .args(["-c", "import moto.server"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn install(folder: &Path) -> Result<()> {
    ensure!(
        command::find("python3").is_some(),
        "there is no python3 here"
    );
    command::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(folder),
    )?;
    let install = ["-m", "pip", "install", "--quiet", "moto[server]"];
    command::run(Command::new(folder.join("bin/python")).args(install))
}
