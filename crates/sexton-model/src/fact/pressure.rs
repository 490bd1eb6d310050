//! Facts about pressure (PSI): time that was lost waiting for a resource. The subject is
//! the node or a cgroup.

use super::show::{Group, Series, Show};

const fn stalled(id: &'static str, label: &'static str) -> Show {
    Show::Series(Series::line(id, Group::Pressure, label, "pressure").as_heat())
}

facts! {
    /// part of the interval in which at least one task waited for a CPU
    gauge PRESSURE_CPU_SOME_RATIO = "pressure_cpu_some_ratio" in Ratio,
        shown: stalled("pressure.cpu", "tasks wait for a CPU");
    /// part of the last 10 seconds, as the kernel averages it, in which at least one task waited
    /// for a CPU
    gauge PRESSURE_CPU_SOME_AVG10_RATIO = "pressure_cpu_some_avg10_ratio" in Ratio;
    /// part of the interval in which every task that was not idle waited for a CPU
    gauge PRESSURE_CPU_FULL_RATIO = "pressure_cpu_full_ratio" in Ratio;
    /// part of the last 10 seconds, as the kernel averages it, in which every task that was not
    /// idle waited for a CPU
    gauge PRESSURE_CPU_FULL_AVG10_RATIO = "pressure_cpu_full_avg10_ratio" in Ratio;
    /// part of the interval in which at least one task waited for memory
    gauge PRESSURE_MEMORY_SOME_RATIO = "pressure_memory_some_ratio" in Ratio,
        shown: stalled("pressure.memory", "tasks wait for memory");
    /// part of the last 10 seconds, as the kernel averages it, in which at least one task waited
    /// for memory
    gauge PRESSURE_MEMORY_SOME_AVG10_RATIO = "pressure_memory_some_avg10_ratio" in Ratio;
    /// part of the interval in which every task that was not idle waited for memory
    gauge PRESSURE_MEMORY_FULL_RATIO = "pressure_memory_full_ratio" in Ratio,
        shown: stalled("pressure.memory.full", "all tasks wait for memory");
    /// part of the last 10 seconds, as the kernel averages it, in which every task that was not
    /// idle waited for memory
    gauge PRESSURE_MEMORY_FULL_AVG10_RATIO = "pressure_memory_full_avg10_ratio" in Ratio;
    /// part of the interval in which at least one task waited for I/O
    gauge PRESSURE_IO_SOME_RATIO = "pressure_io_some_ratio" in Ratio,
        shown: stalled("pressure.io", "tasks wait for I/O");
    /// part of the last 10 seconds, as the kernel averages it, in which at least one task waited
    /// for I/O
    gauge PRESSURE_IO_SOME_AVG10_RATIO = "pressure_io_some_avg10_ratio" in Ratio;
    /// part of the interval in which every task that was not idle waited for I/O
    gauge PRESSURE_IO_FULL_RATIO = "pressure_io_full_ratio" in Ratio,
        shown: stalled("pressure.io.full", "all tasks wait for I/O");
    /// part of the last 10 seconds, as the kernel averages it, in which every task that was not
    /// idle waited for I/O
    gauge PRESSURE_IO_FULL_AVG10_RATIO = "pressure_io_full_avg10_ratio" in Ratio;
    /// cgroups with a CPU quota, of those that were looked at
    gauge CPU_QUOTA_CGROUPS = "cpu_quota_cgroups" in Count;
    /// part of the periods of the interval in which a cgroup used its CPU quota up
    gauge CPU_THROTTLED_RATIO = "cpu_throttled_ratio" in Ratio;
}
