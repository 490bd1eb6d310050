//! Facts about pressure (PSI): time that was lost waiting for a resource. The subject is
//! the node or a cgroup.

use super::metric::Metric;
use super::show::{Group, Series, Show};
use crate::payload;

payload! {
    /// A process ran or waited for a core in an interval in which tasks waited for a CPU much of
    /// the time. The subject is the process. Only the few that ran or waited most are recorded.
    /// Before there was cpu_owner, only the main thread was counted.
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

    /// Tasks that have not slept for a time: each ran or waited for a core for 95 % of it.
    pub struct Endless {
        /// how many
        pub n: u64,
        /// for how long, up to the end of the interval
        pub for_ns: u64,
    }

    /// All processes of one cgroup together ran and waited for a core in an interval in which tasks
    /// waited for a CPU much of the time, with their threads. The subject is the cgroup, or the name
    /// of processes in no cgroup. Owners that did little are one event about the node.
    pub struct CpuOwner {
        /// the name of its process that ran and waited most
        pub comm: Option<String>,
        /// the cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// whether it is what its niced processes did (nice above 0), which is kept apart
        pub niced: Option<bool>,
        /// whether these are threads of the kernel
        pub of_kernel: Option<bool>,
        /// whether it is the process that records this
        pub own: Option<bool>,
        /// owners that are summed up here, where it is more than one
        pub n_owners: Option<u64>,
        /// processes that ran or waited
        pub n_processes: u64,
        /// how long their threads ran, all together
        pub ran_ns: u64,
        /// how long their threads could have run and waited for a core, all together
        pub waited_ns: u64,
        /// tasks that did not sleep, by for how long, longest first
        pub endless: Vec<Endless>,
        /// the length of the interval
        pub interval_ns: u64,
        /// processes, or threads of processes, that this look left out: it has a time limit
        pub n_unread: Option<u64>,
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
    /// what all processes of a cgroup ran and waited for a core while tasks waited for a CPU
    event CPU_OWNER = "cpu_owner" of CpuOwner;
    /// cgroups with a CPU quota, of those that were looked at
    gauge CPU_QUOTA_CGROUPS = "cpu_quota_cgroups" in Count,
        metric: Metric::gauge("sexton_cpu_quota_cgroups");
    /// the CPU quota of a cgroup, in cores: quota by period
    gauge CPU_QUOTA_CORES = "cpu_quota_cores" in Count;
    /// part of the periods of the interval in which a cgroup used its CPU quota up
    gauge CPU_THROTTLED_RATIO = "cpu_throttled_ratio" in Ratio,
        metric: Metric::gauge("sexton_cpu_throttled_ratio");
}
