//! The package for dpkg, by `dpkg-deb`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::tree::{self, Shells};
use super::{Release, write};
use crate::{command, workspace};

const SHELLS: Shells = Shells {
    zsh: "usr/share/zsh/vendor-completions/_sexton",
};

/// What runs while it is installed and removed.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

pub(super) fn make(release: &Release) -> Result<()> {
    let folder = release.scratch.join("deb");
    let files = tree::lay_out(release, &folder, &SHELLS)?;
    let control = folder.join("DEBIAN");
    write(&control.join("conffiles"), &source("conffiles")?, 0o644)?;
    for name in SCRIPTS {
        write(&control.join(name), &source(name)?, 0o755)?;
    }
    pack(release, &folder, &files, ("sexton", &source("control")?))
}

/// Packs a folder as the package of a name, with the text of its `control`.
pub(super) fn pack(
    release: &Release,
    folder: &Path,
    files: &[PathBuf],
    (name, control): (&str, &str),
) -> Result<()> {
    let text = control
        .replace("@VERSION@", &release.version)
        .replace("@ARCH@", architecture())
        .replace("@KIB@", &kib(folder, files)?.to_string());
    let control = folder.join("DEBIAN");
    write(&control.join("control"), &text, 0o644)?;
    write(&control.join("md5sums"), &md5sums(folder, files)?, 0o644)?;
    let name = format!("{name}_{}_{}.deb", release.version, architecture());
    let mut dpkg = Command::new("dpkg-deb");
    // xz is what every dpkg reads; zstd came with Debian 12.
    dpkg.args(["--root-owner-group", "-Zxz", "-z6", "--build"])
        .arg(folder)
        .arg(release.out.join(name))
        .env("SOURCE_DATE_EPOCH", &release.epoch);
    command::output(&mut dpkg).map(drop)
}

pub(super) fn source(name: &str) -> Result<String> {
    let path = workspace::root().join("deploy/deb").join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// As Debian calls this processor.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn kib(folder: &Path, files: &[PathBuf]) -> Result<u64> {
    let mut kib = 0;
    for file in files {
        kib += fs::metadata(folder.join(file))?.len().div_ceil(1024);
    }
    Ok(kib)
}

/// What `dpkg --verify` compares with.
fn md5sums(folder: &Path, files: &[PathBuf]) -> Result<String> {
    let mut text = String::new();
    for file in files.iter().filter(|file| !file.starts_with("etc")) {
        let sum = command::output(Command::new("md5sum").arg(folder.join(file)))?;
        let sum = sum
            .split_whitespace()
            .next()
            .context("md5sum prints a sum")?;
        let _ = writeln!(text, "{sum}  {}", file.display());
    }
    Ok(text)
}
