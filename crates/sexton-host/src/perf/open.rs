//! Asks the kernel for one event of perf on one core.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

// All of this is include/uapi/linux/perf_event.h.
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
const PERF_COUNT_SW_DUMMY: u64 = 9;
const PERF_FLAG_FD_CLOEXEC: u64 = 1 << 3;

const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_RAW: u64 = 1 << 10;

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const KSYMBOL: u64 = 1 << 29;

const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_SET_OUTPUT: libc::Ioctl = 0x2405;
const IOC_SET_FILTER: libc::Ioctl = 0x4008_2406;

/// `struct perf_event_attr` as far as its fifth version, which Linux 4.8 knows. Kernels take
/// shorter ones than their own.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

impl Attributes {
    /// Stacks, by the core's software clock.
    pub(super) fn clock(period: Duration) -> Self {
        Self {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_CPU_CLOCK,
            sample_period: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            ..Self::of(SAMPLE_CALLCHAIN)
        }
    }

    /// Every hit of a tracepoint, with its fields.
    pub(super) fn tracepoint(id: u64) -> Self {
        Self {
            kind: PERF_TYPE_TRACEPOINT,
            config: id,
            sample_period: 1,
            ..Self::of(SAMPLE_RAW)
        }
    }

    /// Nothing that happens by itself: the event only tells of tasks and their mappings.
    pub(super) fn silent() -> Self {
        Self {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_DUMMY,
            ..Self::of(0)
        }
    }

    /// What all have in common. The boot clock is refused for tracepoints, because it may not
    /// be read in every context.
    fn of(content: u64) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | content,
            flags: DISABLED | SAMPLE_ID_ALL | USE_CLOCKID,
            clockid: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }

    /// The same, telling of tasks too.
    pub(super) fn follow_tasks(mut self, follows: bool) -> Self {
        if follows {
            self.flags |= COMM | TASK | COMM_EXEC;
        }
        self
    }

    /// The same, of a task and all that it starts from now on.
    pub(super) fn inherit(mut self) -> Self {
        self.flags |= INHERIT;
        self
    }

    /// The same, beginning when the task executes a program.
    pub(super) fn begin_on_exec(mut self) -> Self {
        self.flags |= ENABLE_ON_EXEC;
        self
    }

    /// The same, of programs and not of the kernel.
    pub(super) fn without_kernel(mut self) -> Self {
        self.flags |= EXCLUDE_KERNEL | EXCLUDE_HV | EXCLUDE_CALLCHAIN_KERNEL;
        self
    }

    /// The same, telling of code that processes map too.
    pub(super) fn follow_mappings(mut self, follows: bool) -> Self {
        if follows {
            self.flags |= MMAP | MMAP2;
        }
        self
    }

    /// The same, telling of code that the kernel makes too. Before 5.1 the kernel refuses that.
    pub(super) fn follow_made_code(mut self, follows: bool) -> Self {
        if follows {
            self.flags |= KSYMBOL;
        }
        self
    }
}

/// Whose events are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of all tasks.
    All,
    /// Those of one task.
    Task(u32),
    /// Those of the calling thread, which hands them on to what it starts.
    Own,
}

/// Opens it on that core.
pub(super) fn open(attributes: &Attributes, whose: Whose, cpu: u32) -> io::Result<OwnedFd> {
    let no_group = -1;
    let task = match whose {
        Whose::All => -1,
        Whose::Task(tid) => i32::try_from(tid).map_err(io::Error::other)?,
        Whose::Own => 0,
    };
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
    // SAFETY: the attributes outlive the call, and their size is in them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            task,
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

/// Has an event write to the ring of another of the same core.
pub(super) fn set_output(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: both are open descriptors, and the kernel takes the second by value.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_OUTPUT, to.as_raw_fd()) };
    check(done)
}

/// Has the kernel leave out what does not match.
pub(super) fn set_filter(event: &OwnedFd, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter).map_err(io::Error::other)?;
    // SAFETY: the kernel reads a string that outlives the call.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_FILTER, filter.as_ptr()) };
    check(done)
}

/// Begins to tell.
pub(super) fn enable(event: &OwnedFd) -> io::Result<()> {
    // SAFETY: an open descriptor and a number.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_ENABLE, 0) };
    check(done)
}

fn check(done: i32) -> io::Result<()> {
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_are_as_long_as_the_kernels_fifth_version() {
        assert_eq!(size_of::<Attributes>(), 112);
        assert_eq!(std::mem::offset_of!(Attributes, clockid), 92);
    }
}
