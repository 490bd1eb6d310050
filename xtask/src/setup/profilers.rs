//! The programs that `cargo xtask bench profile` and `bench stacks` measure sexton beside.
//!
//! One that cannot be had here is told, and named in the table as not run.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{command, workspace};

/// Longer than this, and it is not worth waiting for.
const BUILD_LIMIT_SECONDS: &str = "900";

/// Brings perf, without which there is nothing to read, and samply; says where that is.
/// inferno is a library, and part of the bench.
pub(crate) fn install() -> Result<Option<PathBuf>> {
    if command::find("perf").is_none() {
        eprintln!("set-up: this machine lacks linux-perf, to compare with");
        super::install(&["linux-perf"])?;
    }
    let samply = samply().inspect_err(|error| eprintln!("not compared with samply: {error:#}"));
    Ok(samply.ok())
}

/// No release of Debian has it.
fn samply() -> Result<PathBuf> {
    if let Some(path) = command::find("samply") {
        return Ok(path);
    }
    let place = workspace::target_dir().join("peers");
    let program = place.join("bin/samply");
    if program.exists() {
        return Ok(program);
    }
    eprintln!("set-up: building samply from crates.io, once, for at most {BUILD_LIMIT_SECONDS} s");
    let status = Command::new("timeout")
        .args([BUILD_LIMIT_SECONDS, "cargo", "install", "samply"])
        .args(["--locked", "--root"])
        .arg(&place)
        .arg("--target-dir")
        .arg(place.join("target"))
        .status()
        .context("cannot start timeout, of coreutils")?;
    ensure!(status.success(), "it cannot be built here");
    Ok(program)
}
