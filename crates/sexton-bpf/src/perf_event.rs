//! Events of perf that run a BPF program.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use libbpf_rs::libbpf_sys::{PERF_FLAG_FD_CLOEXEC, PERF_TYPE_TRACEPOINT, perf_event_attr};
use libbpf_rs::{Link, ProgramMut};

/// What the kernel is asked for.
pub(crate) struct Event {
    /// `PERF_TYPE_...`.
    pub(crate) kind: u32,
    /// Which one of that kind.
    pub(crate) config: u64,
    /// Tells after so many.
    pub(crate) period: u64,
    /// On this core, for all tasks.
    pub(crate) cpu: u32,
}

/// Asks for one.
pub(crate) fn open(event: &Event) -> io::Result<OwnedFd> {
    // SAFETY: the kernel's own struct; zero is the default of every field.
    let mut attr: perf_event_attr = unsafe { mem::zeroed() };
    attr.type_ = event.kind;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.config = event.config;
    attr.__bindgen_anon_1.sample_period = event.period;
    let all_tasks = -1;
    let no_group = -1;
    let cpu = i32::try_from(event.cpu).map_err(io::Error::other)?;
    // SAFETY: `attr` outlives the call, and its size is in it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            all_tasks,
            cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Runs a program on an event until the link is dropped.
pub(crate) fn attach(program: &ProgramMut<'_>, event: OwnedFd) -> libbpf_rs::Result<Link> {
    let link = program.attach_perf_event(event.as_raw_fd())?;
    // The link closes it from here on.
    let _ = event.into_raw_fd();
    Ok(link)
}

/// Runs a program on the tracepoint that tracefs gives this number. The kernel runs it wherever
/// the tracepoint is met, whichever core the event is for.
pub(crate) fn attach_tracepoint(program: &ProgramMut<'_>, id: u64) -> libbpf_rs::Result<Link> {
    let event = open(&Event {
        kind: PERF_TYPE_TRACEPOINT,
        config: id,
        period: 0,
        cpu: 0,
    })?;
    attach(program, event)
}
