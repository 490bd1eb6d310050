//! The package for rpm, by `rpmbuild`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::tree::{self, CONFIG, Shells};
use super::{Release, write};
use crate::{command, workspace};

const SHELLS: Shells = Shells {
    zsh: "usr/share/zsh/site-functions/_sexton",
};

pub(super) fn make(release: &Release) -> Result<()> {
    let place = release.scratch.join("rpm");
    let folder = place.join("files");
    let files = tree::lay_out(release, &folder, &SHELLS)?;
    pack(release, &place, &files, &source("sexton.spec")?)
}

pub(super) fn source(name: &str) -> Result<String> {
    let path = workspace::root().join("deploy/rpm").join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Packs the folder `files` of a place by the text of a spec.
pub(super) fn pack(release: &Release, place: &Path, files: &[PathBuf], spec: &str) -> Result<()> {
    let folder = place.join("files");
    let spec = spec
        .replace("@VERSION@", &release.version)
        .replace("@ARCH@", std::env::consts::ARCH)
        .replace("@FILES@\n", &list(files));
    let spec_file = place.join("package.spec");
    write(&spec_file, &spec, 0o644)?;
    let define = |name: &str, value: &str| format!("--define={name} {value}");
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild
        .arg("-bb")
        .arg(define("_topdir", &place.join("top").to_string_lossy()))
        .arg(define("_rpmdir", &release.out.to_string_lossy()))
        .arg(define(
            "_rpmfilename",
            "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
        ))
        // The same tree gives the same package, and its files stay as they are.
        .arg(define("_buildhost", "localhost"))
        .arg(define("use_source_date_epoch_as_buildtime", "1"))
        .arg(define("clamp_mtime_to_source_date_epoch", "1"))
        .arg(define("__os_install_post", "%{nil}"))
        .arg(define("_build_id_links", "none"))
        .arg("--buildroot")
        .arg(&folder)
        .arg(&spec_file)
        .env("SOURCE_DATE_EPOCH", &release.epoch);
    command::output(&mut rpmbuild).map(drop)
}

/// The files as a spec has them; all belong to root.
fn list(files: &[PathBuf]) -> String {
    let mut text = String::from("%defattr(-,root,root,-)\n");
    for file in files {
        let kind = match file {
            file if file.as_os_str() == CONFIG => "%config(noreplace) ",
            file if file.starts_with("usr/share/doc") || file.starts_with("usr/share/man") => {
                "%doc "
            }
            _ => "",
        };
        text.push_str(&format!("{kind}/{}\n", file.display()));
    }
    text
}
