//! A timer on one core that runs a BPF program. It needs no hardware counter, so it works
//! in any guest.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use libbpf_rs::libbpf_sys::{PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE};
use libbpf_rs::{Link, ProgramMut};

use crate::perf_event::{self, Event};

/// Runs a program on one core again and again, until the link is dropped. Fails with
/// `ENODEV` for a core that is offline.
pub(crate) fn run_every(
    period: Duration,
    cpu: u32,
    program: &ProgramMut<'_>,
) -> libbpf_rs::Result<Link> {
    perf_event::attach(program, open(period, cpu)?)
}

/// Whether such a timer may be had.
pub(crate) fn try_open(cpu: u32) -> io::Result<()> {
    open(Duration::from_secs(1), cpu).map(drop)
}

fn open(period: Duration, cpu: u32) -> io::Result<OwnedFd> {
    perf_event::open(&Event {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK.into(),
        period: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
        cpu,
    })
}
