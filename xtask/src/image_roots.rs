//! Roots of Debian releases with many packages, which image audits are tested on.
//!
//! Made once, about two minutes each, from the archive that this machine uses, and then
//! found in `target/image-roots`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::guest::mirror::Mirror;
use crate::{command, workspace};

/// The oldest that fleets still run, and the newest.
const SUITES: &[&str] = &["bullseye", "bookworm", "trixie"];

/// Packages that bring units, as many sorts of them as there are. Those that a release does
/// not have are left out.
const PACKAGES: &str = "openssh-server cron rsyslog chrony docker.io postfix nginx-light \
    nfs-kernel-server multipath-tools open-iscsi lvm2 mdadm unattended-upgrades fwupd udisks2 \
    modemmanager accountsservice acpid at sysstat man-db snapd open-vm-tools qemu-guest-agent \
    ufw nftables conntrackd cloud-init smartmontools avahi-daemon bluez network-manager \
    wpasupplicant keepalived haproxy redis-server fail2ban dnsmasq uuid-runtime squashfs-tools \
    lxc ifupdown nvme-cli irqbalance rng-tools5 prometheus-node-exporter hyperv-daemons \
    memcached rsync x11-common";

/// The folder that holds them. A release that cannot be had is said, and its tests say so.
pub(crate) fn make() -> Result<PathBuf> {
    let place = workspace::target_dir().join("image-roots");
    for suite in SUITES {
        if !place.join(suite).is_dir()
            && let Err(error) = make_one(&place, suite)
        {
            eprintln!("error: no root of {suite}: {error:#}");
        }
    }
    Ok(place)
}

fn make_one(place: &Path, suite: &str) -> Result<()> {
    ensure!(command::is_root(), "only root can make it");
    eprintln!("image-roots: making {suite} with many packages, which takes minutes, once");
    let partial = place.join(format!("partial-{suite}"));
    if partial.exists() {
        fs::remove_dir_all(&partial)
            .with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let archive = Mirror::of_this_machine()?.main;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .args([
            "--variant=minbase",
            "--include=systemd,systemd-sysv,dbus,udev",
        ])
        .env("LC_ALL", "C");
    if let Some(key) = &archive.signed_by {
        debootstrap.arg(format!("--keyring={key}"));
    }
    debootstrap.arg(suite).arg(&partial).arg(&archive.uri);
    command::output(&mut debootstrap)?;
    install(&partial)?;
    fs::rename(&partial, place.join(suite)).with_context(|| format!("cannot name {suite}"))?;
    Ok(())
}

/// As a build of an image does it: nothing is started.
fn install(root: &Path) -> Result<()> {
    let policy = root.join("usr/sbin/policy-rc.d");
    fs::write(&policy, "#!/bin/sh\nexit 101\n").context("cannot write policy-rc.d")?;
    command::output(Command::new("chmod").arg("+x").arg(&policy))?;
    let resolver = Path::new("/etc/resolv.conf");
    if resolver.exists() {
        fs::copy(resolver, root.join("etc/resolv.conf")).context("cannot copy resolv.conf")?;
    }
    let script = format!(
        "apt-get update && apt-get install -y --no-install-recommends $(for p in {PACKAGES}; do \
         apt-cache show $p >/dev/null 2>&1 && echo $p; done)"
    );
    let mut chroot = Command::new("chroot");
    chroot.arg(root).args(["sh", "-c", &script]);
    chroot
        .env("LC_ALL", "C")
        .env("DEBIAN_FRONTEND", "noninteractive");
    command::output(&mut chroot)?;
    Ok(())
}
