//! The files of a package, in a folder as they will lie on a node.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::Release;
use crate::{command, workspace};

/// Files of the source tree, and where they go.
const FILES: &[(&str, &str)] = &[
    (
        "deploy/systemd/sexton-agent.service",
        "usr/lib/systemd/system/sexton-agent.service",
    ),
    (
        "deploy/systemd/sexton-remedy.socket",
        "usr/lib/systemd/system/sexton-remedy.socket",
    ),
    (
        "deploy/systemd/sexton-remedy@.service",
        "usr/lib/systemd/system/sexton-remedy@.service",
    ),
    (
        "deploy/systemd/sexton.sysusers",
        "usr/lib/sysusers.d/sexton.conf",
    ),
    (
        "deploy/systemd/before-linux-5.8.conf",
        "usr/share/sexton/before-linux-5.8.conf",
    ),
    ("deploy/systemd/agent.toml", CONFIG),
    ("README.md", "usr/share/doc/sexton/README.md"),
    ("docs/agent.md", "usr/share/doc/sexton/agent.md"),
    ("LICENSE", "usr/share/doc/sexton/copyright"),
    (
        "crates/sexton-bpf/LICENSE-BPF",
        "usr/share/doc/sexton/LICENSE-BPF",
    ),
];

/// What people change, so that an upgrade must keep it.
pub(super) const CONFIG: &str = "etc/sexton/agent.toml";

/// Where completions of a shell go.
pub(super) struct Shells {
    pub(super) zsh: &'static str,
}

/// Files of the package of sexton-fleet.
const FLEET: &[(&str, &str)] = &[
    ("docs/fleet.md", "usr/share/doc/sexton-fleet/fleet.md"),
    ("LICENSE", "usr/share/doc/sexton-fleet/copyright"),
];

/// Lays out sexton-fleet in a new folder; gives the paths in it, sorted.
pub(super) fn lay_out_fleet(binary: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    put(binary, &folder.join("usr/bin/sexton-fleet"), 0o755)?;
    for (from, to) in FLEET {
        put(&workspace::root().join(from), &folder.join(to), 0o644)?;
    }
    listed(folder)
}

/// Lays out all files in a new folder; gives their paths in it, sorted.
pub(super) fn lay_out(release: &Release, folder: &Path, shells: &Shells) -> Result<Vec<PathBuf>> {
    put(&release.binary, &folder.join("usr/bin/sexton"), 0o755)?;
    for (from, to) in FILES {
        put(&workspace::root().join(from), &folder.join(to), 0o644)?;
    }
    let completions = release.docs.join("completions");
    for (name, to) in [
        (
            "sexton.bash",
            "usr/share/bash-completion/completions/sexton",
        ),
        (
            "sexton.fish",
            "usr/share/fish/vendor_completions.d/sexton.fish",
        ),
        ("_sexton", shells.zsh),
    ] {
        put(&completions.join(name), &folder.join(to), 0o644)?;
    }
    for page in fs::read_dir(release.docs.join("man"))? {
        let page = page?;
        let to = folder.join("usr/share/man/man1").join(page.file_name());
        put(&page.path(), &to, 0o644)?;
        // Without a name and a time in it, so that it is the same every time.
        command::output(Command::new("gzip").args(["--no-name", "-9"]).arg(&to))?;
    }
    listed(folder)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    list(folder, folder, &mut files)?;
    files.sort();
    Ok(files)
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let folder = to.parent().context("a file in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::copy(from, to)
        .map(drop)
        .and_then(|()| fs::set_permissions(to, fs::Permissions::from_mode(mode)))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else {
            files.push(path.strip_prefix(root)?.to_owned());
        }
    }
    Ok(())
}
