//! A process, or a thread of this one, that the kernel refuses BPF: what old kernels and strict
//! set-ups look like from inside.
#![allow(unsafe_code, reason = "prctl with a filter has no safe form")]

use std::io;
use std::ptr;
use std::thread;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, sock_filter, sock_fprog,
};

/// Has the kernel refuse `bpf()` to this thread, and to what it starts, from now on. Needs root.
pub fn refuse_here() -> io::Result<()> {
    let step = |code: u32, jt, jf, k| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let refused = SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut steps = [
        // The number of the call is the first word of what the filter is given.
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, libc::SYS_bpf as u32),
        step(BPF_RET | BPF_K, 0, 0, refused),
        step(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW),
    ];
    let filter = sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the filter, which outlives the call.
    let done = unsafe {
        libc::prctl(
            PR_SET_SECCOMP,
            libc::c_ulong::from(SECCOMP_MODE_FILTER),
            ptr::from_ref(&filter),
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Runs something in a thread of its own that is refused BPF.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let refused = scope.spawn(|| {
            refuse_here().expect("root may refuse itself something");
            work()
        });
        refused
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
