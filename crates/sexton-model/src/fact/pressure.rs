//! Facts about pressure (PSI): time that was lost waiting for a resource. The subject is
//! the node or a cgroup.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &PRESSURE_CPU_SOME_RATIO,
    &PRESSURE_CPU_SOME_AVG10_RATIO,
    &PRESSURE_CPU_FULL_RATIO,
    &PRESSURE_CPU_FULL_AVG10_RATIO,
    &PRESSURE_MEMORY_SOME_RATIO,
    &PRESSURE_MEMORY_SOME_AVG10_RATIO,
    &PRESSURE_MEMORY_FULL_RATIO,
    &PRESSURE_MEMORY_FULL_AVG10_RATIO,
    &PRESSURE_IO_SOME_RATIO,
    &PRESSURE_IO_SOME_AVG10_RATIO,
    &PRESSURE_IO_FULL_RATIO,
    &PRESSURE_IO_FULL_AVG10_RATIO,
    &CPU_QUOTA_CGROUPS,
    &CPU_THROTTLED_RATIO,
];

/// Part of the interval in which at least one task waited for a CPU.
pub static PRESSURE_CPU_SOME_RATIO: Fact = Fact {
    name: "pressure_cpu_some_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the interval in which at least one task waited for a CPU",
};

/// Part of the last 10 seconds, as the kernel averages it, in which at least one task waited for a CPU.
pub static PRESSURE_CPU_SOME_AVG10_RATIO: Fact = Fact {
    name: "pressure_cpu_some_avg10_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the last 10 seconds, as the kernel averages it, in which at least one task waited for a CPU",
};

/// Part of the interval in which every task that was not idle waited for a CPU.
pub static PRESSURE_CPU_FULL_RATIO: Fact = Fact {
    name: "pressure_cpu_full_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the interval in which every task that was not idle waited for a CPU",
};

/// Part of the last 10 seconds, as the kernel averages it, in which every task that was not idle waited for a CPU.
pub static PRESSURE_CPU_FULL_AVG10_RATIO: Fact = Fact {
    name: "pressure_cpu_full_avg10_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the last 10 seconds, as the kernel averages it, in which every task that was not idle waited for a CPU",
};

/// Part of the interval in which at least one task waited for memory.
pub static PRESSURE_MEMORY_SOME_RATIO: Fact = Fact {
    name: "pressure_memory_some_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the interval in which at least one task waited for memory",
};

/// Part of the last 10 seconds, as the kernel averages it, in which at least one task waited for memory.
pub static PRESSURE_MEMORY_SOME_AVG10_RATIO: Fact = Fact {
    name: "pressure_memory_some_avg10_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the last 10 seconds, as the kernel averages it, in which at least one task waited for memory",
};

/// Part of the interval in which every task that was not idle waited for memory.
pub static PRESSURE_MEMORY_FULL_RATIO: Fact = Fact {
    name: "pressure_memory_full_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the interval in which every task that was not idle waited for memory",
};

/// Part of the last 10 seconds, as the kernel averages it, in which every task that was not idle waited for memory.
pub static PRESSURE_MEMORY_FULL_AVG10_RATIO: Fact = Fact {
    name: "pressure_memory_full_avg10_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the last 10 seconds, as the kernel averages it, in which every task that was not idle waited for memory",
};

/// Part of the interval in which at least one task waited for I/O.
pub static PRESSURE_IO_SOME_RATIO: Fact = Fact {
    name: "pressure_io_some_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the interval in which at least one task waited for I/O",
};

/// Part of the last 10 seconds, as the kernel averages it, in which at least one task waited for I/O.
pub static PRESSURE_IO_SOME_AVG10_RATIO: Fact = Fact {
    name: "pressure_io_some_avg10_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the last 10 seconds, as the kernel averages it, in which at least one task waited for I/O",
};

/// Part of the interval in which every task that was not idle waited for I/O.
pub static PRESSURE_IO_FULL_RATIO: Fact = Fact {
    name: "pressure_io_full_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the interval in which every task that was not idle waited for I/O",
};

/// Part of the last 10 seconds, as the kernel averages it, in which every task that was not idle waited for I/O.
pub static PRESSURE_IO_FULL_AVG10_RATIO: Fact = Fact {
    name: "pressure_io_full_avg10_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the last 10 seconds, as the kernel averages it, in which every task that was not idle waited for I/O",
};

/// Cgroups that have a CPU quota, of those that were looked at.
pub static CPU_QUOTA_CGROUPS: Fact = Fact {
    name: "cpu_quota_cgroups",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "cgroups with a CPU quota, of those that were looked at",
};

/// How often a cgroup was stopped because its CPU quota was used up.
pub static CPU_THROTTLED_RATIO: Fact = Fact {
    name: "cpu_throttled_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the periods of the interval in which a cgroup used its CPU quota up",
};
