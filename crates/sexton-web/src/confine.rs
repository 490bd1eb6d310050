//! Confines the threads that answer clients: they open only the given folders, start no
//! process and make no connection of their own.
//!
//! Rules of this kind hold for a thread and those it starts, so that sensors keep what they need.
//! Threads share their memory: this stops a request that leads the server to a file or a program, not
//! one that takes over its memory.

use std::collections::BTreeMap;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// What this is written for; an older kernel enforces what it knows of it.
const KNOWN: ABI = ABI::V3;

/// Calls that no answer to a client needs: programs, other processes, the kernel, connections.
/// Not a list of what is allowed: what the C library calls changes with its version.
const REFUSED: [i64; 24] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kill,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_io_uring_setup,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_open_by_handle_at,
];

/// Why a thread could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// Which files it may open.
    #[error("cannot confine which files are opened")]
    Files(#[source] landlock::RulesetError),
    /// What it may ask of the kernel.
    #[error("cannot confine which calls are made")]
    Calls(#[source] seccompiler::Error),
    /// Its capabilities.
    #[error("cannot drop capabilities")]
    Capabilities(#[source] rustix::io::Errno),
}

/// Confines this thread and all that it starts: it reads below `read`, reads and writes below
/// `write`, and has no capability. Gives whether the kernel holds it to its files: before Linux 5.13
/// it cannot.
pub fn confine(read: &[&Path], write: &[&Path]) -> Result<bool, ConfineError> {
    // One that fails does not keep the others from being tried.
    let files = confine_files(read, write).map_err(ConfineError::Files);
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    let capabilities = set_capabilities(None, none).map_err(ConfineError::Capabilities);
    let calls = confine_calls().map_err(ConfineError::Calls);
    let holds = files?;
    capabilities.and(calls)?;
    Ok(holds)
}

fn confine_files(read: &[&Path], write: &[&Path]) -> Result<bool, landlock::RulesetError> {
    let to_read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let to_write = AccessFs::from_all(KNOWN) & !AccessFs::Execute;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(read, to_read))?
        .add_rules(path_beneath_rules(write, to_write))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn confine_calls() -> Result<(), seccompiler::Error> {
    let refused = REFUSED.into_iter().map(|call| (call, Vec::new()));
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = refused.collect();
    #[cfg(target_arch = "x86_64")]
    refused.extend([(libc::SYS_fork, Vec::new()), (libc::SYS_vfork, Vec::new())]);
    refused.insert(libc::SYS_clone, vec![is_process()?]);
    // Its flags lie in memory, where a filter cannot look. The C library goes back to clone.
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply(unknown, libc::ENOSYS)?;
    apply(refused, libc::EPERM)
}

/// A clone that is no thread of this process.
fn is_process() -> Result<SeccompRule, seccompiler::Error> {
    let thread = libc::CLONE_THREAD.unsigned_abs().into();
    let is_none = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(thread),
        0,
    );
    let rule = is_none.and_then(|is_none| SeccompRule::new(vec![is_none]));
    rule.map_err(seccompiler::Error::Backend)
}

fn apply(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<(), seccompiler::Error> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH);
    let program: BpfProgram = architecture
        .and_then(|architecture| {
            let refuse = SeccompAction::Errno(errno.unsigned_abs());
            SeccompFilter::new(calls, SeccompAction::Allow, refuse, architecture)
        })
        .and_then(TryInto::try_into)
        .map_err(seccompiler::Error::Backend)?;
    apply_filter(&program)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn a_confined_thread_reaches_its_files_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (ring, temporary) = (folder.path().join("ring"), folder.path().join("tmp"));
        for folder in [&ring, &temporary] {
            fs::create_dir(folder).expect("a folder");
        }
        fs::write(ring.join("a"), "seen").expect("a file");
        let secret = folder.path().join("secret");
        fs::write(&secret, "hidden").expect("a file");
        let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
        let address = listener.local_addr().expect("an address");
        let tried = {
            let secret = secret.clone();
            thread::spawn(move || {
                let holds = confine(&[&ring], &[&temporary]).expect("it is confined");
                // What a compromised handler would try, on a worker that it starts.
                let worker = thread::spawn(move || {
                    assert_eq!(fs::read_to_string(ring.join("a")).expect("it may"), "seen");
                    fs::write(temporary.join("b"), "kept").expect("it may");
                    if holds {
                        let denied = |done: std::io::Result<()>| {
                            done.expect_err("it is confined").kind() == PermissionDenied
                        };
                        assert!(denied(fs::read_to_string(&secret).map(drop)));
                        assert!(denied(fs::read_to_string("/etc/passwd").map(drop)));
                        assert!(denied(fs::write(ring.join("a"), "forged")));
                        assert!(denied(fs::remove_file(ring.join("a"))));
                    }
                    let spawned = Command::new("/bin/true").spawn();
                    assert_eq!(spawned.expect_err("no process").kind(), PermissionDenied);
                    let connected = TcpStream::connect(address);
                    assert_eq!(connected.expect_err("no way").kind(), PermissionDenied);
                });
                worker.join().expect("it saw what it should");
            })
        };
        tried.join().expect("it saw what it should");
        // Others are not confined.
        assert_eq!(fs::read_to_string(&secret).expect("it may"), "hidden");
        assert!(
            Command::new("/bin/true")
                .status()
                .expect("it runs")
                .success()
        );
    }
}
