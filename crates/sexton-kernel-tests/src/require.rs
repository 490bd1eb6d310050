//! What a test needs of the machine. There is no early return: a test that
//! cannot run fails, and says what is missing in a form that the runner knows.

use std::path::PathBuf;
use std::process::Command;

use sexton_host::Host;
use sexton_host::capabilities::Capabilities;

use crate::systemd::ROOTFS;

/// Something that a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The privileges of root.
    Root,
    /// Loading BPF programs that fit the kernel.
    Bpf,
    /// A program to compare with.
    Program(&'static str),
    /// The built program itself.
    Sexton,
    /// A part of the release, by how its name ends.
    Part(&'static str),
    /// Booting systemd in namespaces.
    Systemd,
}

/// Fails with `sexton-missing: NEED: reason` when the machine does not offer it.
pub fn require(need: Need) {
    if let Err((name, reason)) = check(need) {
        panic!("sexton-missing: {name}: {reason}");
    }
}

fn check(need: Need) -> Result<(), (&'static str, String)> {
    let host = Host::live().map_err(|error| ("root", error.chain()))?;
    let held = Capabilities::of_self(&host).map_err(|error| ("root", error.chain()))?;
    match need {
        Need::Root | Need::Systemd if !held.has("CAP_SYS_ADMIN") => {
            Err(("root", "run as root".into()))
        }
        Need::Bpf if !held.missing(&["CAP_BPF", "CAP_PERFMON"]).is_empty() => {
            Err(("root", "run as root".into()))
        }
        Need::Bpf if !sexton_host::machine::has_type_information(&host) => {
            Err(("bpf", "the kernel has no type information (BTF)".into()))
        }
        Need::Program(name) if !is_on_path(name) => {
            Err(("programs", format!("there is no {name} here")))
        }
        Need::Sexton if !crate::sexton::binary().is_some_and(|path| path.exists()) => Err((
            "sexton",
            "SEXTON does not name a built sexton: run cargo xtask test kernel".into(),
        )),
        Need::Part(ending) if crate::release::part(ending).is_none() => Err((
            "sexton",
            format!("SEXTON_DIST names no folder with a *{ending}: run cargo xtask test kernel"),
        )),
        Need::Systemd => check_systemd().map_err(|reason| ("systemd", reason)),
        Need::Root | Need::Bpf | Need::Program(_) | Need::Sexton | Need::Part(_) => Ok(()),
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn check_systemd() -> Result<(), String> {
    let rootfs = std::env::var_os(ROOTFS)
        .map(PathBuf::from)
        .ok_or("there is no tree to boot: cargo xtask test kernel makes it, as root")?;
    let systemd = rootfs.join("lib/systemd/systemd");
    if !systemd.exists() {
        return Err(format!("there is no {}", systemd.display()));
    }
    let out = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--cgroup", "--net", "true"])
        .output()
        .map_err(|error| format!("cannot start unshare: {error}"))?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    Err(format!("namespaces cannot be made: {}", said.trim()))
}
