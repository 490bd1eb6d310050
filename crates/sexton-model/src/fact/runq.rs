//! Facts about waiting for a core.

use super::metric::{CORES, MAX_CORES, Metric};
use super::show::{Group, SECOND, Series, Show};
use crate::payload;

payload! {
    /// A task waited for a core, and who ran there longest meanwhile.
    pub struct CoreWait {
        /// the task that waited
        pub pid: u32,
        /// its name
        pub comm: Option<String>,
        /// its cgroup, where it could still be asked for
        pub cgroup: Option<String>,
        /// how far it stands back for others, from -20 to 19 (nice), likewise
        pub nice: Option<i64>,
        /// how long
        pub waited_ns: u64,
        /// who ran longest meanwhile, or runs now if the wait goes on
        pub holder_pid: Option<u32>,
        /// its name
        pub holder_comm: Option<String>,
        /// how long it ran, of the wait
        pub holder_ns: Option<u64>,
        /// its cgroup, if the wait took half a second or more and it could still be asked for
        pub holder_cgroup: Option<String>,
        /// whether it has real-time priority (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE), likewise
        pub holder_realtime: Option<bool>,
    }
}

const LONGEST: Series = Series::line(
    "cores.wait",
    Group::Cores,
    "longest wait for a core",
    "runq",
)
.of_any()
.every(SECOND, 5 * SECOND);

const MEAN: Series = Series::line(
    "cores.mean_wait",
    Group::Cores,
    "mean wait for a core",
    "runq",
)
.of_any()
.every(SECOND, 5 * SECOND);

facts! {
    /// half of the waits for this core that ended in the interval were at most this long, rounded
    /// up to a power of two
    gauge RUNQ_DELAY_P50_NS = "runq_delay_p50_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_runq_delay_p50_seconds").by(CORES, MAX_CORES);
    /// 99 of 100 waits for this core that ended in the interval were at most this long, rounded
    /// up to a power of two
    gauge RUNQ_DELAY_P99_NS = "runq_delay_p99_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_runq_delay_p99_seconds").by(CORES, MAX_CORES);
    /// the longest wait for this core that ended in the interval; below one millisecond, rounded
    /// up to a power of two
    gauge RUNQ_DELAY_MAX_NS = "runq_delay_max_ns" in Nanoseconds,
        shown: Show::Series(LONGEST),
        metric: Metric::gauge("sexton_runq_delay_max_seconds").by(CORES, MAX_CORES);
    /// the mean of the waits for this core that ended in the interval; told where the kernel's own
    /// counts are all there is
    gauge RUNQ_DELAY_MEAN_NS = "runq_delay_mean_ns" in Nanoseconds,
        shown: Show::Series(MEAN),
        metric: Metric::gauge("sexton_runq_delay_mean_seconds").by(CORES, MAX_CORES);
    /// tasks that could run but have waited over 100 ms for a core and still do; a CPU quota
    /// makes tasks wait too
    gauge RUNQ_WAITING_TASKS = "runq_waiting_tasks" in Count,
        metric: Metric::gauge("sexton_runq_waiting_tasks");
    /// how long the task that waits longest for a core has waited by now; 0 when none waits over
    /// 100 ms
    gauge RUNQ_WAITING_NS = "runq_waiting_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_runq_waiting_seconds");
    /// a task that could run waited over 100 ms for this core
    event RUNQ_WAIT = "runq_wait" of CoreWait;
    /// a task that could run has waited over 100 ms for this core and still does
    event RUNQ_WAITING = "runq_waiting" of CoreWait;
    /// the longest wait for any core that ended in the interval, from 10 to 100 ms; details as of
    /// runq_wait
    event RUNQ_LONGEST = "runq_longest" of CoreWait;
}
