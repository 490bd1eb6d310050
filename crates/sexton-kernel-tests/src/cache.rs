//! Page cache of a live neighbour: made, and looked at again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::fs::{Advice, fadvise};

use crate::nursery::Nursery;

/// Reads a new file from within a new cgroup below the nursery.
pub fn fill(nursery: &Nursery, name: &str, bytes: usize) -> Result<PathBuf> {
    let path = nursery.files.join(format!("{name}.cache"));
    fs::write(&path, vec![b'x'; bytes])?;
    let cgroup = nursery.keep(name)?;
    fill_again(&path, &cgroup)?;
    Ok(path)
}

/// Has a cgroup read a file into the cache, on its own account.
pub fn fill_again(path: &Path, cgroup: &Path) -> Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    // Whoever wrote it has the pages on its account: drop them first.
    fadvise(&file, 0, None, Advice::DontNeed)?;
    let script = "echo $$ > \"$0/cgroup.procs\" && cat \"$1\" > /dev/null";
    let status = Command::new("sh")
        .args(["-c", script])
        .args([cgroup, path])
        .status()
        .context("cannot start sh")?;
    ensure!(status.success(), "cannot read {}", path.display());
    Ok(())
}

/// The part of a file that is cached, from 0 to 1.
pub fn share(path: &Path) -> Result<f64> {
    let output = Command::new("fincore")
        .args(["--bytes", "--noheadings", "--output", "RES,SIZE"])
        .arg(path)
        .output()
        .context("cannot start fincore, of util-linux")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
    let [resident, size] = numbers[..] else {
        anyhow::bail!("fincore said {text:?}");
    };
    Ok(resident / size)
}
