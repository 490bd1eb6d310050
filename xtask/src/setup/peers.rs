//! The recorders that `cargo xtask bench overhead` and `agent` measure sexton beside.
//!
//! One that cannot be had here is told, and left out of the table: a bench is no reason
//! to fail for what others do not build on.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{command, workspace};

/// What packages bring.
const PACKAGED: [(&str, &str); 2] = [
    ("atop", "atop"),
    ("prometheus-node-exporter", "prometheus-node-exporter"),
];

/// Its build calls plain `clang`, which is too old on Debian 12.
const CLANG: &str = "/usr/lib/llvm-19/bin";

/// Longer than this, and it is not worth waiting for.
const BUILD_LIMIT_SECONDS: &str = "480";

/// Brings those that are missing, and says where the one is that is built here.
pub(crate) fn install() -> Option<PathBuf> {
    install_packaged();
    below()
        .inspect_err(|error| eprintln!("not compared with below: {error:#}"))
        .ok()
}

/// Brings those that packages have.
pub(crate) fn install_packaged() {
    let missing: Vec<&str> = PACKAGED
        .iter()
        .filter(|(program, _)| command::find(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if !missing.is_empty() {
        eprintln!(
            "set-up: this machine lacks {}, to compare with",
            missing.join(", ")
        );
        if let Err(error) = super::install(&missing) {
            eprintln!("not compared with: {error:#}");
        }
    }
}

/// No release of Debian has it.
fn below() -> Result<PathBuf> {
    if let Some(path) = command::find("below") {
        return Ok(path);
    }
    let place = workspace::target_dir().join("peers");
    let program = place.join("bin/below");
    if program.exists() {
        return Ok(program);
    }
    eprintln!("set-up: building below from crates.io, once, for at most {BUILD_LIMIT_SECONDS} s");
    let path = std::env::var("PATH").unwrap_or_default();
    let status = Command::new("timeout")
        .args([
            BUILD_LIMIT_SECONDS,
            "cargo",
            "install",
            "below",
            "--locked",
            "--root",
        ])
        .arg(&place)
        .arg("--target-dir")
        .arg(place.join("target"))
        .env("PATH", format!("{CLANG}:{path}"))
        .status()
        .context("cannot start timeout, of coreutils")?;
    ensure!(status.success(), "it cannot be built here");
    Ok(program)
}
