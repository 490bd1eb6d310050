//! Prometheus and promtool, as Debian packages them: tests have them read our metrics and rules.
//!
//! The package is unpacked and not installed: installed, it starts a server on every boot.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{command, workspace};

const PACKAGE: &str = "prometheus";

/// Prepares `prometheus/` in the target directory when it is not there. What fails here is not
/// an error: the tests that need it then do not run, and say so.
pub(crate) fn prepare() {
    let folder = workspace::target_dir().join("prometheus");
    let programs = ["usr/bin/prometheus", "usr/bin/promtool"];
    if programs.iter().all(|name| folder.join(name).exists()) {
        return;
    }
    eprintln!(
        "set-up: unpacks {PACKAGE} into {}: tests have it read metrics and rules",
        folder.display()
    );
    if let Err(error) = unpack(&folder) {
        eprintln!("set-up: no {PACKAGE} for tests: {error:#}");
    }
}

fn unpack(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    if download(folder).is_err() {
        // A fresh machine has no list of packages yet.
        command::run(super::apt_get()?.arg("update"))?;
        download(folder)?;
    }
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            command::run(
                Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(&path)
                    .arg(folder),
            )?;
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn download(folder: &Path) -> Result<()> {
    let mut apt = Command::new("apt-get");
    command::run(apt.args(["download", PACKAGE]).current_dir(folder))
}
