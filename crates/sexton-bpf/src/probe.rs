//! What the kernel's BPF must be able to do, asked before a program is loaded. An old kernel checks a
//! large program for seconds, and says no in words that only its authors understand.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::{Arc, OnceLock};

use libbpf_rs::libbpf_sys::{
    BPF_ALU64, BPF_EXIT, BPF_F_MMAPABLE, BPF_JMP, BPF_K, BPF_MAP_TYPE_ARRAY, BPF_MOV,
    BPF_PROG_TYPE_RAW_TRACEPOINT, bpf_insn, bpf_map_create, bpf_map_create_opts, bpf_prog_load,
    bpf_prog_test_run_opts, bpf_test_run_opts,
};

use crate::LoadError;
use crate::loaded::Program;

/// Whether the kernel shares memory with BPF programs, as Linux does since 5.5. All of ours need
/// that. True as well where BPF is refused to us: then loading says why.
pub fn shares_memory() -> bool {
    static SHARES: OnceLock<bool> = OnceLock::new();
    let is_unknown = |error: io::Error| error.raw_os_error() == Some(libc::EINVAL);
    *SHARES.get_or_init(|| !shared_array().is_err_and(is_unknown))
}

/// `Err` where the kernel takes a program of a raw tracepoint and does not run it when it is asked to
/// (`BPF_PROG_TEST_RUN`). Where it does not even take the smallest, loading ours says why.
pub(crate) fn runs_on_demand(program: Program) -> Result<(), LoadError> {
    let Ok(smallest) = smallest_program() else {
        return Ok(());
    };
    run(&smallest).map_err(|source| LoadError::Rejected {
        program: program.name,
        detail: "it runs no program on demand, as Linux does since 5.10".into(),
        source: Arc::new(source.into()),
    })
}

fn shared_array() -> io::Result<OwnedFd> {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        map_flags: BPF_F_MMAPABLE,
        ..bpf_map_create_opts::default()
    };
    let (key_bytes, value_bytes, n_values) = (4, 8, 1);
    // SAFETY: the name and the options outlive the call.
    let fd = unsafe {
        bpf_map_create(
            BPF_MAP_TYPE_ARRAY,
            c"sexton_probe".as_ptr(),
            key_bytes,
            value_bytes,
            n_values,
            &raw const options,
        )
    };
    owned(fd)
}

/// A program that returns 0.
fn smallest_program() -> io::Result<OwnedFd> {
    let step = |code: u32| bpf_insn {
        code: code as u8,
        ..bpf_insn::default()
    };
    let steps = [step(BPF_ALU64 | BPF_MOV | BPF_K), step(BPF_JMP | BPF_EXIT)];
    // SAFETY: texts and instructions outlive the call, and their number is right.
    let fd = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_RAW_TRACEPOINT,
            c"sexton_probe".as_ptr(),
            c"Dual BSD/GPL".as_ptr(),
            steps.as_ptr(),
            steps.len() as _,
            ptr::null_mut(),
        )
    };
    owned(fd)
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn run(program: &OwnedFd) -> io::Result<()> {
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as _,
        ..bpf_test_run_opts::default()
    };
    // SAFETY: an open descriptor, and options that outlive the call and point to nothing.
    let done = unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if done < 0 {
        return Err(io::Error::from_raw_os_error(-done));
    }
    Ok(())
}
