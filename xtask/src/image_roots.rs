//! Roots of Debian releases with many packages, which image audits are tested on.
//!
//! Made once, all at the same time, from the archive that this machine uses, and then found
//! in `target/image-roots`. The packages are configured as in any build of an image, because
//! it is their scripts that enable units.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::guest::mirror::Mirror;
use crate::{command, workspace};

/// The oldest that fleets still run, and the newest.
const SUITES: &[&str] = &["bullseye", "bookworm", "trixie", "sid"];

/// The one whose `/lib` is no link: machines that were upgraded since before are like that.
const SPLIT: &str = "bullseye";

/// Packages that the newest no longer has.
const GONE: (&str, &[&str]) = ("sid", &["rng-tools5"]);

/// What makes `/lib` a link before the first package is unpacked.
const MERGED_USR: &str = "/usr/share/mmdebstrap/hooks/merged-usr";

/// Packages that bring units, as many sorts of them as there are.
const PACKAGES: &str = "systemd systemd-sysv dbus udev openssh-server cron rsyslog chrony docker.io postfix nginx-light \
    nfs-kernel-server multipath-tools open-iscsi lvm2 mdadm unattended-upgrades fwupd udisks2 \
    modemmanager accountsservice acpid at sysstat man-db snapd open-vm-tools qemu-guest-agent \
    ufw nftables conntrackd cloud-init smartmontools avahi-daemon bluez network-manager \
    wpasupplicant keepalived haproxy redis-server fail2ban dnsmasq uuid-runtime squashfs-tools \
    lxc ifupdown nvme-cli irqbalance rng-tools5 prometheus-node-exporter hyperv-daemons \
    memcached rpm rsync x11-common";

/// What dpkg need not unpack and scripts need not do: no unit depends on it.
const THRIFT: &[&str] = &[
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--aptopt=APT::Install-Recommends \"false\"",
    // A mirror that stands still has an old list of sid, and its signature still counts.
    "--aptopt=Acquire::Check-Valid-Until \"false\"",
];

/// As a build of an image does it: nothing is started.
const PREPARE: &str = "printf '#!/bin/sh\\nexit 101\\n' > \"$1/usr/sbin/policy-rc.d\" && \
    chmod +x \"$1/usr/sbin/policy-rc.d\" && \
    echo man-db man-db/auto-update boolean false | chroot \"$1\" debconf-set-selections";

/// The folder that holds them. A release that cannot be had is said, and its tests say so.
pub(crate) fn make() -> Result<PathBuf> {
    let place = workspace::target_dir().join("image-roots");
    std::thread::scope(|scope| {
        for suite in SUITES.iter().filter(|suite| !place.join(suite).is_dir()) {
            let place = &place;
            scope.spawn(move || {
                if let Err(error) = make_one(place, suite) {
                    eprintln!("error: no root of {suite}: {error:#}");
                }
            });
        }
    });
    Ok(place)
}

fn make_one(place: &Path, suite: &str) -> Result<()> {
    ensure!(command::is_root(), "only root can make it");
    eprintln!("image-roots: making {suite} with many packages, which takes minutes, once");
    let start = Instant::now();
    let partial = place.join(format!("partial-{suite}"));
    if partial.exists() {
        fs::remove_dir_all(&partial)
            .with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    fs::create_dir_all(place).with_context(|| format!("cannot create {}", place.display()))?;
    let archive = Mirror::of_this_machine()?.main;
    let is_gone = |package: &&str| suite == GONE.0 && GONE.1.contains(package);
    let packages = PACKAGES.split_whitespace();
    let packages: Vec<&str> = packages.filter(|package| !is_gone(package)).collect();
    // In mounts of its own: killed in the middle it would leave /proc mounted in there, and the
    // next run could not remove it.
    let mut mmdebstrap = Command::new("unshare");
    mmdebstrap
        .args(["--mount", "mmdebstrap", "--variant=minbase", "--quiet"])
        .arg(format!("--include={}", packages.join(",")))
        .arg(format!("--essential-hook={PREPARE}"))
        .args(THRIFT)
        .env("LC_ALL", "C");
    if suite != SPLIT {
        mmdebstrap.arg(format!("--hook-dir={MERGED_USR}"));
    }
    mmdebstrap
        .arg(suite)
        .arg(&partial)
        .arg(archive.line(suite).trim_end());
    command::output(&mut mmdebstrap)?;
    fs::rename(&partial, place.join(suite)).with_context(|| format!("cannot name {suite}"))?;
    let seconds = start.elapsed().as_secs();
    eprintln!("image-roots: {suite} took {seconds} s");
    Ok(())
}
