//! Brings what a fresh Debian machine lacks, after saying what and why.
//!
//! What is already there is not touched, however it came there.

pub(crate) mod node;
pub(crate) mod peers;
pub(crate) mod profilers;
pub(crate) mod prometheus;
pub(crate) mod python;
pub(crate) mod servers;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::command;

/// Which work a need belongs to. Each has the needs of those before it, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum For {
    /// Compiling the workspace.
    Build,
    /// Compiling it with its page.
    Page,
    /// All that, and making packages of it.
    Dist,
    /// Compiling it, and running its tests here.
    Tests,
    /// All that, and booting guests to test it in.
    Guests,
}

/// How to see that a need is met.
#[derive(Clone, Copy)]
enum Proof {
    /// A program on the PATH.
    Program(&'static str),
    /// A file; the first that exists will do.
    File(&'static [&'static str]),
    /// A module that the Python on the PATH has.
    Python(&'static str),
}

struct Need {
    proof: Proof,
    package: &'static str,
    why: &'static str,
    work: For,
}

const NEEDS: &[Need] = &[
    Need {
        // Plain clang is 14 on Debian 12, and that one crashes on CO-RE code.
        proof: Proof::Program("clang-19"),
        package: "clang-19",
        why: "compiles the BPF programs",
        work: For::Build,
    },
    Need {
        proof: Proof::Program("gcc"),
        package: "gcc",
        why: "compiles and links libbpf",
        work: For::Build,
    },
    Need {
        proof: Proof::Program("make"),
        package: "make",
        why: "builds libbpf",
        work: For::Build,
    },
    Need {
        proof: Proof::Program("pkg-config"),
        package: "pkg-config",
        why: "finds the libraries libbpf links",
        work: For::Build,
    },
    Need {
        proof: Proof::File(&["/usr/include/stdio.h"]),
        package: "libc6-dev",
        why: "C headers for libbpf",
        work: For::Build,
    },
    Need {
        proof: Proof::File(&["/usr/include/libelf.h"]),
        package: "libelf-dev",
        why: "libbpf reads BPF objects with it",
        work: For::Build,
    },
    Need {
        proof: Proof::File(&["/usr/include/zlib.h"]),
        package: "zlib1g-dev",
        why: "libbpf and libelf link it",
        work: For::Build,
    },
    Need {
        proof: Proof::Program("node"),
        package: "nodejs",
        why: "builds the page",
        work: For::Page,
    },
    Need {
        proof: Proof::Program("npm"),
        package: "npm",
        why: "brings what the page is built with",
        work: For::Page,
    },
    Need {
        proof: Proof::Program("mpstat"),
        package: "sysstat",
        why: "tests compare what sexton says of each core with it",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("ip"),
        package: "iproute2",
        why: "makes networks of their own for kernel tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("perf"),
        package: "linux-perf",
        why: "tests and a bench read what it records",
        work: For::Tests,
    },
    Need {
        proof: Proof::File(&["/usr/lib/debug/.build-id"]),
        package: "libc6-dbg",
        why: "a test names functions of libc with its debug file",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("go"),
        package: "golang-go",
        why: "its pprof opens profiles that tests write",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("ethtool"),
        package: "ethtool",
        why: "has the devices of those networks polled",
        work: For::Tests,
    },
    Need {
        // What Debian splits off from Python: without it there is no pip in a venv.
        proof: Proof::Python("ensurepip"),
        package: "python3-venv",
        why: "a test reads recordings with DuckDB and pandas",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("debootstrap"),
        package: "debootstrap",
        why: "makes the small Debian whose systemd is tested with",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("mmdebstrap"),
        package: "mmdebstrap",
        why: "makes the Debian roots that audits are tested on",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("qemu-img"),
        package: "qemu-utils",
        why: "makes qcow2 images for tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("mksquashfs"),
        package: "squashfs-tools",
        why: "makes squashfs images for tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::File(&["/usr/sbin/mkfs.xfs", "/sbin/mkfs.xfs"]),
        package: "xfsprogs",
        why: "makes XFS images for tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::File(&["/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs"]),
        package: "btrfs-progs",
        why: "makes Btrfs images for tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::File(&["/usr/sbin/sfdisk", "/sbin/sfdisk"]),
        package: "fdisk",
        why: "makes partition tables for tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("systemctl"),
        package: "systemd",
        why: "tests compare what sexton says of units with it",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("rpmbuild"),
        package: "rpm",
        why: "makes our package, and packages and databases of them for tests",
        work: For::Dist,
    },
    Need {
        proof: Proof::Program("strace"),
        package: "strace",
        why: "kills a change of an image at each of its steps",
        work: For::Tests,
    },
    Need {
        proof: Proof::File(&["/usr/bin/time"]),
        package: "time",
        why: "measures the memory of an audit",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("curl"),
        package: "curl",
        why: "asks the agent over TLS in tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("openssl"),
        package: "openssl",
        why: "makes certificates for tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("zstd"),
        package: "zstd",
        why: "makes layers of images for tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::Program("chromium"),
        package: "chromium",
        why: "shows the page to tests",
        work: For::Tests,
    },
    Need {
        proof: Proof::File(&[
            "/usr/share/keyrings/debian-archive-keyring.gpg",
            "/usr/share/keyrings/debian-archive-keyring.pgp",
        ]),
        package: "debian-archive-keyring",
        why: "checks the guest kernels that are downloaded",
        work: For::Guests,
    },
];

/// What not every Debian has. A test that needs it says so where it is not.
const OPTIONAL: &[Need] = &[Need {
    proof: Proof::Program("packer"),
    package: "packer",
    why: "runs the example for it",
    work: For::Tests,
}];

/// Installs what may be there to install, and goes on without it if it is not.
pub(crate) fn install_optional() {
    for need in missing(OPTIONAL, For::Tests, is_met) {
        eprintln!("set-up: {} {}", need.package, need.why);
        install(&[need.package])
            .unwrap_or_else(|error| eprintln!("set-up: going on without it: {error:#}"));
    }
}

/// Installs what `work` needs and this machine lacks.
pub(crate) fn install_missing(work: For) -> Result<()> {
    let missing = missing(NEEDS, work, is_met);
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("set-up: this machine lacks");
    for need in &missing {
        eprintln!("    {:24} {}", need.package, need.why);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    install(&packages).with_context(|| by_hand(&packages))?;
    let still: Vec<&str> = missing
        .iter()
        .filter(|need| !is_met(need.proof))
        .map(|need| need.package)
        .collect();
    ensure!(
        still.is_empty(),
        "installed, but still not found: what {} should bring",
        still.join(", ")
    );
    Ok(())
}

fn missing(needs: &[Need], work: For, is_met: impl Fn(Proof) -> bool) -> Vec<&Need> {
    needs
        .iter()
        .filter(|need| need.work <= work && !is_met(need.proof))
        .collect()
}

fn is_met(proof: Proof) -> bool {
    match proof {
        Proof::Program(name) => command::find(name).is_some(),
        Proof::File(paths) => paths.iter().any(|path| Path::new(path).exists()),
        Proof::Python(module) => Command::new("python3")
            .args(["-c", &format!("import {module}")])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success()),
    }
}

fn by_hand(packages: &[&str]) -> String {
    format!(
        "cannot install {}; as root on Debian type: apt-get update && apt-get install --no-install-recommends {}",
        packages.join(", "),
        packages.join(" ")
    )
}

fn install(packages: &[&str]) -> Result<()> {
    ensure!(
        command::find("apt-get").is_some(),
        "there is no apt-get here"
    );
    command::run(apt_get()?.arg("update"))?;
    command::run(
        apt_get()?
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages),
    )
}

/// `apt-get` with the right to install.
fn apt_get() -> Result<Command> {
    const QUIET: &[&str] = &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    let prefix: &[&str] = if command::is_root() {
        &[]
    } else if sudo_asks_nothing() {
        &["sudo", "-n"]
    } else if command::find("sudo").is_some() && std::io::stdin().is_terminal() {
        &["sudo"]
    } else {
        bail!("not root, and sudo is absent or would ask for a password nobody can type");
    };
    let words = [prefix, QUIET].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    Ok(command)
}

fn sudo_asks_nothing() -> bool {
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    sudo.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(work: For, present: &[&str], expected: &[&str]) {
        let is_met = |proof| match proof {
            Proof::Program(name) => present.contains(&name),
            Proof::File(paths) => paths.iter().any(|path| present.contains(path)),
            Proof::Python(module) => present.contains(&module),
        };
        let names: Vec<&str> = missing(NEEDS, work, is_met)
            .iter()
            .map(|need| need.package)
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn only_what_is_absent_is_missing() {
        let present = [
            "gcc",
            "make",
            "pkg-config",
            "/usr/include/stdio.h",
            "/usr/include/zlib.h",
        ];
        check(For::Build, &present, &["clang-19", "libelf-dev"]);
        check(
            For::Tests,
            &present,
            &[
                "clang-19",
                "libelf-dev",
                "nodejs",
                "npm",
                "sysstat",
                "iproute2",
                "linux-perf",
                "libc6-dbg",
                "golang-go",
                "ethtool",
                "python3-venv",
                "debootstrap",
                "mmdebstrap",
                "qemu-utils",
                "squashfs-tools",
                "xfsprogs",
                "btrfs-progs",
                "fdisk",
                "systemd",
                "rpm",
                "strace",
                "time",
                "curl",
                "openssl",
                "zstd",
                "chromium",
            ],
        );
    }

    #[test]
    fn guests_need_all_that_a_build_and_its_tests_need() {
        let present = [
            "gcc",
            "make",
            "pkg-config",
            "/usr/include/stdio.h",
            "/usr/include/zlib.h",
            "/usr/include/libelf.h",
        ];
        check(
            For::Guests,
            &present,
            &[
                "clang-19",
                "nodejs",
                "npm",
                "sysstat",
                "iproute2",
                "linux-perf",
                "libc6-dbg",
                "golang-go",
                "ethtool",
                "python3-venv",
                "debootstrap",
                "mmdebstrap",
                "qemu-utils",
                "squashfs-tools",
                "xfsprogs",
                "btrfs-progs",
                "fdisk",
                "systemd",
                "rpm",
                "strace",
                "time",
                "curl",
                "openssl",
                "zstd",
                "chromium",
                "debian-archive-keyring",
            ],
        );
    }

    #[test]
    fn the_way_out_names_every_package() {
        let text = by_hand(&["clang-19", "make"]);
        assert!(
            text.contains("clang-19, make")
                && text.contains("install --no-install-recommends clang-19 make")
        );
    }
}
