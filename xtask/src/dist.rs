//! `cargo xtask dist`: what a node is given, in `target/dist`: the static binary, packages for
//! dpkg and rpm, a container image, a list of all that is in the binary, and checksums.
//!
//! The binary is the one that all tests run. Packages are made by `dpkg-deb` and `rpmbuild`, the
//! tools that define their formats and that our tests need anyway: cargo-deb and
//! cargo-generate-rpm would compile hundreds of crates to write the same files. The image is
//! written here, without a container engine.

mod deb;
mod fleet;
mod image;
mod rpm;
mod sbom;
mod tree;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::{command, page, setup, workspace};

/// What all parts are made of.
struct Release {
    version: String,
    /// Seconds since 1970 of the last commit: the same tree gives the same packages.
    epoch: String,
    binary: PathBuf,
    /// Man pages and completions.
    docs: PathBuf,
    /// Where parts are put together.
    scratch: PathBuf,
    /// Where they are put when they are whole.
    out: PathBuf,
}

/// Builds sexton, and makes everything of it; of sexton-fleet packages, if that is asked for.
pub(crate) fn dist(with_fleet: bool) -> Result<ExitCode> {
    setup::install_missing(setup::For::Dist)?;
    page::build()?;
    command::run(&mut workspace::build_static_sexton())?;
    if with_fleet {
        command::run(&mut workspace::build_fleet())?;
    }
    let fleet = with_fleet.then(workspace::fleet);
    let out = make(&workspace::static_sexton(), fleet.as_deref())?;
    for entry in fs::read_to_string(out.join(SUMS))?.lines() {
        println!("{entry}");
    }
    println!("{}", out.display());
    Ok(ExitCode::SUCCESS)
}

const SUMS: &str = "SHA256SUMS";

/// Makes everything of binaries that are built.
pub(crate) fn make(binary: &Path, fleet: Option<&Path>) -> Result<PathBuf> {
    ensure_static(binary)?;
    let release = prepare(binary)?;
    let name = format!(
        "sexton-{}-{}-linux",
        release.version,
        std::env::consts::ARCH
    );
    fs::copy(binary, release.out.join(&name)).context("cannot copy the binary")?;
    deb::make(&release)?;
    rpm::make(&release)?;
    image::make(&release)?;
    sbom::make(&release, "sexton", &name, sbom::LIBRARIES)?;
    if let Some(fleet) = fleet {
        fleet::make(&release, fleet)?;
    }
    sums(&release.out)?;
    fs::remove_dir_all(&release.scratch).context("cannot remove what parts were made in")?;
    Ok(release.out)
}

fn prepare(binary: &Path) -> Result<Release> {
    let out = workspace::target_dir().join("dist");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    let scratch = out.join("scratch");
    let docs = scratch.join("docs");
    fs::create_dir_all(&docs).with_context(|| format!("cannot create {}", docs.display()))?;
    for kind in ["man", "completions"] {
        let mut generate = Command::new(binary);
        command::output(generate.args(["generate", kind]).arg(docs.join(kind)))?;
    }
    Ok(Release {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        epoch: epoch()?,
        binary: binary.to_owned(),
        docs,
        scratch,
        out,
    })
}

/// Of the last commit; of a tree without its history, of its list of crates.
fn epoch() -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"])
        .current_dir(workspace::root());
    if let Ok(seconds) = command::output(&mut git) {
        return Ok(seconds.trim().to_owned());
    }
    let lock = fs::metadata(workspace::root().join("Cargo.lock"))?;
    let since = lock.modified()?.duration_since(std::time::UNIX_EPOCH)?;
    Ok(since.as_secs().to_string())
}

/// A binary that asks for a loader or a library would not run on every node.
fn ensure_static(binary: &Path) -> Result<()> {
    let mut readelf = Command::new("readelf");
    readelf
        .args(["--wide", "--program-headers", "--dynamic"])
        .arg(binary);
    let told = command::output(readelf.env("LC_ALL", "C"))?;
    let asks = told
        .lines()
        .find(|line| line.contains("INTERP") || line.contains("(NEEDED)"));
    ensure!(
        asks.is_none(),
        "{} is not static: {}",
        binary.display(),
        asks.unwrap_or_default().trim()
    );
    Ok(())
}

/// As `sha256sum --check` reads them.
fn sums(out: &Path) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let mut text = String::new();
    for name in names {
        text.push_str(&format!("{}  {name}\n", sha256(&out.join(&name))?));
    }
    fs::write(out.join(SUMS), text).context("cannot write the checksums")
}

/// The checksum of a file, in hexadecimal.
fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let digest = Sha256::digest(bytes);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The same on every machine that packs it: sorted, owned by root, of one time.
fn tar(release: &Release, folder: &Path, archive: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ])
    .arg(format!("--mtime=@{}", release.epoch))
    .arg("--file")
    .arg(archive)
    .arg("--directory")
    .arg(folder)
    .arg(".");
    command::output(&mut tar).map(drop)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let folder = path.parent().context("a file in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .with_context(|| format!("cannot write {}", path.display()))
}
