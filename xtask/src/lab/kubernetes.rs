//! A kubelet, an API server and its store. No release of Debian ships the first two, but the
//! sources lie in its archive: they are built once, which takes a quarter of an hour.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};

use super::play::fingerprint;
use crate::guest::mirror::Mirror;
use crate::{command, setup, workspace};

const BUILD: &str = include_str!("kubernetes.sh");

/// What it calls itself, and the release of Debian whose archive has its sources.
const VERSION: &str = "v1.20.2";
const SOURCES: &str = "bookworm";

/// The release whose Go builds it, and what else is wanted there.
const SUITE: &str = "bullseye";
const PACKAGES: &str = "golang-1.15-go,make,dpkg-dev,rsync,etcd-server,openssl";

/// Where they are in there when all is done, and a key that the API server signs with.
const PROGRAMS: [&str; 4] = [
    "/kubelet",
    "/kube-apiserver",
    "/usr/bin/etcd",
    "/signing.key",
];

/// The programs, built if they are not there.
pub(super) fn programs() -> Result<Vec<PathBuf>> {
    let recipe = format!("{VERSION} {SOURCES} {SUITE} {PACKAGES}\n{BUILD}");
    let key = fingerprint(recipe.as_bytes());
    let folder = super::folder().join(format!("kubernetes-{key:016x}"));
    if !folder.is_dir() {
        build(&folder.with_extension("partial"))?;
        // Only a complete folder gets the name.
        fs::rename(folder.with_extension("partial"), &folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let name = |program: &str| program.rsplit('/').next().map(|name| folder.join(name));
    Ok(PROGRAMS.into_iter().filter_map(name).collect())
}

/// Tests that need an API server, on one that is started for them on loopback.
pub(super) fn test() -> Result<ExitCode> {
    setup::install_missing(setup::For::Guests)?;
    let programs = programs()?;
    let folder = programs.first().and_then(|program| program.parent());
    let folder = folder.context("there are no programs")?;
    let mut cargo = Command::new("cargo");
    cargo
        .args([
            "test",
            "-p",
            "sexton-kubernetes",
            "--test",
            "real",
            "--",
            "--nocapture",
        ])
        .env("SEXTON_KUBERNETES", folder)
        .current_dir(workspace::root());
    command::run(&mut cargo)?;
    Ok(ExitCode::SUCCESS)
}

/// Builds them into a folder, in a Debian that is thrown away.
fn build(folder: &Path) -> Result<()> {
    ensure!(command::is_root(), "only root can make a small Debian");
    eprintln!("kubernetes: building {VERSION}, which takes a quarter of an hour, once");
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let script = folder.join("build");
    fs::write(&script, BUILD).with_context(|| format!("cannot write {}", script.display()))?;
    let archive = Mirror::of_this_machine()?.main;
    let sources = archive.line(SOURCES).replacen("deb ", "deb-src ", 1);
    // In mounts of its own: what is killed in the middle leaves none.
    let mut mmdebstrap = Command::new("unshare");
    mmdebstrap
        .args(["--mount", "mmdebstrap", "--variant=minbase", "--quiet"])
        .arg(format!("--include={PACKAGES}"))
        .arg("--aptopt=APT::Install-Recommends \"false\"")
        .arg(format!("--customize-hook=copy-in {} /", script.display()))
        .arg(format!(
            "--customize-hook=chroot \"$1\" sh /build {VERSION}"
        ))
        .arg(format!(
            "--customize-hook=copy-out {} {}",
            PROGRAMS.join(" "),
            folder.display()
        ))
        .args([
            SUITE,
            "/dev/null",
            archive.line(SUITE).trim_end(),
            sources.trim_end(),
        ])
        // Its tree takes some gigabytes, more than a /tmp in memory may have.
        .env("TMPDIR", super::folder())
        .env("LC_ALL", "C");
    command::run(&mut mmdebstrap)?;
    fs::remove_file(&script).with_context(|| format!("cannot remove {}", script.display()))
}
