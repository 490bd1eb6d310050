//! The tree of a small Debian with systemd and container runtimes, which kernel tests boot in namespaces.
//!
//! Made once per release and list of packages, from the archive that this machine uses,
//! and then found in `target/rootfs`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::guest::mirror::Mirror;
use crate::{command, workspace};

/// Beside systemd and the bus: what the tests' own programs are linked with, container
/// runtimes, what to fill an image with, what speaks HTTP/2 to them; and what the lab has
/// trouble made with: jobs, networks, modules of the kernel, sessions. Podman wants one of
/// several networks, and debootstrap does not choose: netavark. rpm installs our own package.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,libelf1,zlib1g,libgcc-s1,docker.io,busybox-static,curl,\
     cron,iproute2,kmod,libpam-systemd,netavark,podman,rpm";

/// Tests that want these start them.
const NOT_AT_BOOT: &[&str] = &[
    "docker.service",
    "docker.socket",
    "containerd.service",
    "cron.service",
    "podman.service",
    "podman.socket",
    "podman-auto-update.service",
    "podman-auto-update.timer",
    "podman-restart.service",
    // Nothing of this should begin by itself while something is looked at.
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
];

/// For a machine that is no release of Debian.
const SUITE: &str = "bookworm";

/// The tree, made if it is not there.
pub(crate) fn make() -> Result<PathBuf> {
    let suite = suite(&fs::read_to_string("/etc/os-release").unwrap_or_default());
    let place = workspace::target_dir().join("rootfs");
    let tree = place.join(format!("{suite}_{}", PACKAGES.replace(',', "+")));
    if tree.is_dir() {
        return Ok(tree);
    }
    ensure!(
        command::is_root(),
        "only root can make the tree that systemd is booted from"
    );
    eprintln!("rootfs: making a small {suite}, which takes about two minutes, once");
    let partial = place.join("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)
            .with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let archive = Mirror::of_this_machine()?.main;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .args(["--variant=minbase", &format!("--include={PACKAGES}")])
        .env("LC_ALL", "C");
    if let Some(key) = &archive.signed_by {
        debootstrap.arg(format!("--keyring={key}"));
    }
    debootstrap.arg(&suite).arg(&partial).arg(&archive.uri);
    command::output(&mut debootstrap)?;
    let mut disable = Command::new("chroot");
    disable.arg(&partial).args(["systemctl", "disable"]);
    command::output(disable.args(NOT_AT_BOOT))?;
    // Only a complete tree gets the name, so that a broken one is not kept.
    fs::rename(&partial, &tree).with_context(|| format!("cannot create {}", tree.display()))?;
    Ok(tree)
}

/// The release that this machine runs: programs built here need its libraries or newer.
fn suite(os_release: &str) -> String {
    let field = |name: &str| {
        let mut values = os_release
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter(|(key, _)| *key == name);
        values.next().map(|(_, value)| value.trim_matches('"'))
    };
    match (field("ID"), field("VERSION_CODENAME")) {
        (Some("debian"), Some(codename)) => codename.to_owned(),
        _ => SUITE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_this_machines_if_it_is_debian() {
        let check = |text: &str, expected: &str| assert_eq!(suite(text), expected);
        check("ID=debian\nVERSION_CODENAME=trixie\n", "trixie");
        check("ID=ubuntu\nVERSION_CODENAME=noble\n", SUITE);
        check("", SUITE);
    }
}
