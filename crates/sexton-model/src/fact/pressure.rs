//! Facts about pressure (PSI): time that was lost waiting for a resource. The subject is
//! the node or a cgroup.

use super::metric::Metric;
use super::show::{Group, Series, Show};
use crate::payload;

payload! {
    /// A process ran or waited for a core in an interval in which tasks waited for a CPU much of
    /// the time. The subject is the process. Only the few that ran or waited most are recorded,
    /// by their main thread.
    pub struct CpuTask {
        /// its name
        pub comm: Option<String>,
        /// its cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// how far it stands back for others, from -20 to 19 (nice)
        pub nice: Option<i64>,
        /// how long it ran
        pub ran_ns: u64,
        /// how long it could have run and waited for a core
        pub waited_ns: u64,
        /// the length of the interval
        pub interval_ns: u64,
        /// whether it is the process that records this
        pub own: Option<bool>,
    }
}

const fn stalled(id: &'static str, label: &'static str) -> Show {
    Show::Series(Series::line(id, Group::Pressure, label, "pressure").as_heat())
}

facts! {
    /// part of the interval in which at least one task waited for a CPU
    gauge PRESSURE_CPU_SOME_RATIO = "pressure_cpu_some_ratio" in Ratio,
        shown: stalled("pressure.cpu", "tasks wait for a CPU"),
        metric: Metric::gauge("sexton_pressure_cpu_some_ratio");
    /// part of the last 10 seconds, as the kernel averages it, in which at least one task waited
    /// for a CPU
    gauge PRESSURE_CPU_SOME_AVG10_RATIO = "pressure_cpu_some_avg10_ratio" in Ratio,
        metric: Metric::gauge("sexton_pressure_cpu_some_avg10_ratio");
    /// part of the interval in which every task that was not idle waited for a CPU
    gauge PRESSURE_CPU_FULL_RATIO = "pressure_cpu_full_ratio" in Ratio,
        metric: Metric::gauge("sexton_pressure_cpu_full_ratio");
    /// part of the last 10 seconds, as the kernel averages it, in which every task that was not
    /// idle waited for a CPU
    gauge PRESSURE_CPU_FULL_AVG10_RATIO = "pressure_cpu_full_avg10_ratio" in Ratio,
        metric: Metric::gauge("sexton_pressure_cpu_full_avg10_ratio");
    /// part of the interval in which at least one task waited for memory
    gauge PRESSURE_MEMORY_SOME_RATIO = "pressure_memory_some_ratio" in Ratio,
        shown: stalled("pressure.memory", "tasks wait for memory"),
        metric: Metric::gauge("sexton_pressure_memory_some_ratio");
    /// part of the last 10 seconds, as the kernel averages it, in which at least one task waited
    /// for memory
    gauge PRESSURE_MEMORY_SOME_AVG10_RATIO = "pressure_memory_some_avg10_ratio" in Ratio,
        metric: Metric::gauge("sexton_pressure_memory_some_avg10_ratio");
    /// part of the interval in which every task that was not idle waited for memory
    gauge PRESSURE_MEMORY_FULL_RATIO = "pressure_memory_full_ratio" in Ratio,
        shown: stalled("pressure.memory.full", "all tasks wait for memory"),
        metric: Metric::gauge("sexton_pressure_memory_full_ratio");
    /// part of the last 10 seconds, as the kernel averages it, in which every task that was not
    /// idle waited for memory
    gauge PRESSURE_MEMORY_FULL_AVG10_RATIO = "pressure_memory_full_avg10_ratio" in Ratio,
        metric: Metric::gauge("sexton_pressure_memory_full_avg10_ratio");
    /// part of the interval in which at least one task waited for I/O
    gauge PRESSURE_IO_SOME_RATIO = "pressure_io_some_ratio" in Ratio,
        shown: stalled("pressure.io", "tasks wait for I/O"),
        metric: Metric::gauge("sexton_pressure_io_some_ratio");
    /// part of the last 10 seconds, as the kernel averages it, in which at least one task waited
    /// for I/O
    gauge PRESSURE_IO_SOME_AVG10_RATIO = "pressure_io_some_avg10_ratio" in Ratio,
        metric: Metric::gauge("sexton_pressure_io_some_avg10_ratio");
    /// part of the interval in which every task that was not idle waited for I/O
    gauge PRESSURE_IO_FULL_RATIO = "pressure_io_full_ratio" in Ratio,
        shown: stalled("pressure.io.full", "all tasks wait for I/O"),
        metric: Metric::gauge("sexton_pressure_io_full_ratio");
    /// part of the last 10 seconds, as the kernel averages it, in which every task that was not
    /// idle waited for I/O
    gauge PRESSURE_IO_FULL_AVG10_RATIO = "pressure_io_full_avg10_ratio" in Ratio,
        metric: Metric::gauge("sexton_pressure_io_full_avg10_ratio");
    /// a process that ran or waited for a core while tasks waited for a CPU: how long of each
    event CPU_TASK = "cpu_task" of CpuTask;
    /// cgroups with a CPU quota, of those that were looked at
    gauge CPU_QUOTA_CGROUPS = "cpu_quota_cgroups" in Count,
        metric: Metric::gauge("sexton_cpu_quota_cgroups");
    /// the CPU quota of a cgroup, in cores: quota by period
    gauge CPU_QUOTA_CORES = "cpu_quota_cores" in Count;
    /// part of the periods of the interval in which a cgroup used its CPU quota up
    gauge CPU_THROTTLED_RATIO = "cpu_throttled_ratio" in Ratio,
        metric: Metric::gauge("sexton_cpu_throttled_ratio");
}
