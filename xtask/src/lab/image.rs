//! Disks of guests: the root, made once for each recipe, and the one with the job, made for
//! each run and read back afterwards. No mount is needed for either.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::play::fingerprint;
use crate::command;
use crate::guest::cpio::Archive;

const INITRAMFS: &str = include_str!("initramfs.sh");

/// Room beside what is on it; files of disks are sparse, so what is free costs nothing.
const ROOT_BYTES: u64 = 4 << 30;
const JOB_BYTES: u64 = 1 << 30;

/// Without a journal what `sync` wrote can be read although nobody unmounted it.
const MKE2FS: &[&str] = &[
    "-q",
    "-F",
    "-t",
    "ext4",
    "-O",
    "^has_journal,^metadata_csum",
    "-E",
    "lazy_itable_init=1",
];

/// The disk with this tree, made if there is none of this recipe.
pub(super) fn root(tree: &Path) -> Result<PathBuf> {
    let name = tree.file_name().unwrap_or_default().to_string_lossy();
    let recipe = format!("{name}\n{ROOT_BYTES}\n{MKE2FS:?}");
    let folder = folder()?;
    let disk = folder.join(format!("root-{:016x}.ext4", fingerprint(recipe.as_bytes())));
    if disk.is_file() {
        return Ok(disk);
    }
    eprintln!("lab: making the disk of guests, once for each recipe");
    let partial = folder.join("partial.ext4");
    filesystem(&partial, ROOT_BYTES, tree)?;
    debugfs(&partial, &["-w"], "mkdir /job")?;
    // Only a complete disk gets the name, and those of older recipes go.
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("root-") {
            fs::remove_file(entry.path()).ok();
        }
    }
    fs::rename(&partial, &disk).with_context(|| format!("cannot create {}", disk.display()))?;
    Ok(disk)
}

/// Has this machine read a disk, so that it lies in memory. A guest whose clock leaps while it
/// waits would take a slow disk of ours for a broken one of its own.
pub(super) fn warm(disk: &Path) -> Result<()> {
    let mut file =
        fs::File::open(disk).with_context(|| format!("cannot open {}", disk.display()))?;
    io::copy(&mut file, &mut io::sink())
        .with_context(|| format!("cannot read {}", disk.display()))?;
    Ok(())
}

/// What the kernel unpacks and starts.
pub(super) fn initramfs(busybox: &Path) -> Result<PathBuf> {
    let busybox =
        fs::read(busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    let mut archive = Archive::default();
    for dir in ["bin", "dev", "proc", "root", "sys"] {
        archive.directory(dir);
    }
    archive.device("dev/console", 5, 1);
    archive.program("bin/busybox", &busybox);
    archive.program("init", INITRAMFS.as_bytes());
    let bytes = archive.finish();
    // Guests that boot at the same time share it: it is never written twice.
    let path = folder()?.join(format!("initramfs-{:016x}.cpio", fingerprint(&bytes)));
    if !path.is_file() {
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}

fn folder() -> Result<PathBuf> {
    let folder = super::folder().join("images");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// A disk with this folder, which becomes `/job`.
pub(super) fn job(disk: &Path, folder: &Path) -> Result<()> {
    filesystem(disk, JOB_BYTES, folder)
}

/// Brings a file or folder of a disk into a folder here.
pub(super) fn bring_back(disk: &Path, name: &str, folder: &Path) -> Result<()> {
    let from = format!("rdump /{name} {}", folder.display());
    debugfs(disk, &[], &from)?;
    ensure!(folder.join(name).exists(), "the guest left no {name}");
    Ok(())
}

/// What a run writes goes into a file beside the disk, and is thrown away.
pub(super) fn overlay(disk: &Path, overlay: &Path) -> Result<()> {
    let mut create = Command::new("qemu-img");
    create.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"]);
    command::output(create.arg(disk).arg(overlay))?;
    Ok(())
}

fn filesystem(disk: &Path, bytes: u64, folder: &Path) -> Result<()> {
    let file =
        fs::File::create(disk).with_context(|| format!("cannot create {}", disk.display()))?;
    file.set_len(bytes)
        .with_context(|| format!("cannot size {}", disk.display()))?;
    let mut mke2fs = tool("mke2fs")?;
    command::output(mke2fs.args(MKE2FS).arg("-d").arg(folder).arg(disk))?;
    Ok(())
}

/// It tells of what goes wrong, and ends well all the same: whoever asks looks at what came.
fn debugfs(disk: &Path, options: &[&str], request: &str) -> Result<()> {
    let mut debugfs = tool("debugfs")?;
    command::output(debugfs.args(options).args(["-R", request]).arg(disk))?;
    Ok(())
}

fn tool(name: &str) -> Result<Command> {
    let path = command::find(name)
        .with_context(|| format!("there is no {name}: apt-get install e2fsprogs"))?;
    Ok(Command::new(path))
}
