//! A timer on one core that runs a BPF program. It needs no hardware counter, so it works
//! in any guest.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use libbpf_rs::{Link, ProgramMut};

/// Runs a program on one core again and again, until the link is dropped. Fails with
/// `ENODEV` for a core that is offline.
pub(crate) fn run_every(
    period: Duration,
    cpu: u32,
    program: &ProgramMut<'_>,
) -> libbpf_rs::Result<Link> {
    let event = open(period, cpu)?;
    let link = program.attach_perf_event(event.as_raw_fd())?;
    // The link closes it from here on.
    let _ = event.into_raw_fd();
    Ok(link)
}

/// Whether such a timer may be had.
pub(crate) fn try_open(cpu: u32) -> io::Result<()> {
    open(Duration::from_secs(1), cpu).map(drop)
}

fn open(period: Duration, cpu: u32) -> io::Result<OwnedFd> {
    // SAFETY: the kernel's own struct; zero is the default of every field.
    let mut attr: perf_event_attr = unsafe { mem::zeroed() };
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.config = PERF_COUNT_SW_CPU_CLOCK.into();
    attr.__bindgen_anon_1.sample_period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    let all_tasks = -1;
    let no_group = -1;
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
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
