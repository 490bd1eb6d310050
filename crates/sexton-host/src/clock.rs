//! The clocks: the one that records are stamped with, and the wall's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use sexton_model::moment::Moment;

/// Now, on the clock of a recording.
pub fn now() -> Moment {
    Moment::from_ns(read_ns(ClockId::Boottime))
}

/// Nanoseconds since boot without the time asleep (`CLOCK_MONOTONIC`), which the clocks
/// of the kernel's log and of many BPF programs are close to.
pub fn awake_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Processor time of this thread so far, the kernel's part included.
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(read_ns(ClockId::ThreadCPUTime))
}

/// Processor time of all threads of this process so far, the kernel's part included.
pub fn process_cpu_time() -> Duration {
    Duration::from_nanos(read_ns(ClockId::ProcessCPUTime))
}

fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

/// A moment that the node told on `CLOCK_MONOTONIC`, on the clock of a recording. The two
/// part while a node sleeps, so a moment before its last sleep comes out that much late.
pub fn of_monotonic(ns: u64) -> Moment {
    let asleep = now().as_ns().saturating_sub(monotonic_ns());
    Moment::from_ns(ns.saturating_add(asleep))
}

/// Now, on `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// What the wall clock says, in nanoseconds since 1970; zero before that.
pub fn wall_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
