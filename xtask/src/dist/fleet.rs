//! The packages of sexton-fleet: a program of its own, because of its weight.
//!
//! It asks clouds by name, and a static binary cannot look up names everywhere: that takes libraries of
//! the same version of the C library. So it is linked with the C library of the node, and its packages
//! ask for the oldest version of that which will do.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Release, deb, rpm, sbom, tree};
use crate::command;

/// Libraries that every node with a C library has.
const COMMON: [&str; 4] = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"];

pub(super) fn make(release: &Release, binary: &Path) -> Result<()> {
    let glibc = glibc(binary)?;
    let name = format!(
        "sexton-fleet-{}-{}-linux",
        release.version,
        std::env::consts::ARCH
    );
    std::fs::copy(binary, release.out.join(&name)).context("cannot copy sexton-fleet")?;
    let folder = release.scratch.join("fleet-deb");
    let files = tree::lay_out_fleet(binary, &folder)?;
    let control = deb::source("fleet.control")?.replace("@GLIBC@", &glibc);
    deb::pack(release, &folder, &files, ("sexton-fleet", &control))?;
    let place = release.scratch.join("fleet-rpm");
    let files = tree::lay_out_fleet(binary, &place.join("files"))?;
    let spec = rpm::source("sexton-fleet.spec")?.replace("@GLIBC@", &glibc);
    rpm::pack(release, &place, &files, &spec)?;
    sbom::make(release, "sexton-fleet", &name, &[])
}

/// The oldest C library that a binary runs with.
fn glibc(binary: &Path) -> Result<String> {
    let mut readelf = Command::new("readelf");
    readelf
        .args(["--wide", "--dynamic", "--version-info"])
        .arg(binary);
    let told = command::output(readelf.env("LC_ALL", "C"))?;
    let needed = told.lines().filter(|line| line.contains("(NEEDED)"));
    let other = needed
        .filter_map(|line| line.split_once('['))
        .find(|(_, name)| !COMMON.iter().any(|common| name.starts_with(common)));
    ensure!(
        other.is_none(),
        "{} needs a library that not every node has: {}",
        binary.display(),
        other.map_or("", |(_, name)| name)
    );
    let (major, minor) = newest_glibc(&told).context("readelf names no version of glibc")?;
    Ok(format!("{major}.{minor}"))
}

fn newest_glibc(told: &str) -> Option<(u32, u32)> {
    let named = told.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
        let mut numbers = rest[..end.unwrap_or(rest.len())].split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    named.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_is_named_is_needed() {
        let told = "  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 4\n\
                    0x0020:   Name: GLIBC_2.34  Flags: none\n 4 (GLIBC_2.2.5) GLIBC_PRIVATE";
        assert_eq!(newest_glibc(told), Some((2, 34)));
        assert_eq!(newest_glibc("No version information found"), None);
    }
}
