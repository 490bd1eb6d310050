//! The facts that the view shows, by name. Those that this build does not define are
//! never met, and their panels say "not seen".

use sexton_model::fact::{self, Fact};

/// What a fact is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shown {
    /// Time of a core in the kernel, interrupts left out.
    CoreSystem,
    /// More of a core's time that counts as the kernel's.
    CoreInterrupts,
    /// The core that has most of both.
    WorstSystem,
    /// The longest wait of a task for a core.
    CoreWait,
    /// Dying memory cgroups.
    Dying,
    /// What they hold at least.
    DyingBytes,
    /// Live memory cgroups.
    Live,
    /// How long network polling waits.
    NapiWait,
    /// Network polling waited too long.
    NapiStarved,
    /// A unit began a run.
    UnitStarted,
    /// A unit failed.
    UnitFailed,
    /// A cgroup was made.
    CgroupBorn,
    /// Many cgroups were made, or removed, at once.
    CgroupBurst,
    /// A container began to run.
    ContainerStarted,
    /// A container's first process ended.
    ContainerExited,
    /// How many containers run: a runtime answers.
    ContainersRunning,
    /// A process ended otherwise than with status 0.
    ProcessFailed,
    /// So many of a kind did that they are only counted.
    ProcessFailedBurst,
    /// Part of the time in which a task of the node waited for a CPU.
    PressureCpu,
    /// The same for memory.
    PressureMemory,
    /// The same for I/O.
    PressureIo,
    /// The kernel said something we know.
    KernelLine,
    /// The link of a network device changed.
    NicLink,
    /// What the wall clock said.
    WallClock,
    /// A sensor was polled: it is at work, even if nothing happened.
    Poll,
}

/// The whole table.
const NAMES: &[(&str, Shown)] = &[
    ("core_system_ratio", Shown::CoreSystem),
    ("core_irq_ratio", Shown::CoreInterrupts),
    ("core_softirq_ratio", Shown::CoreInterrupts),
    ("core_worst_system_ratio", Shown::WorstSystem),
    ("runq_waiting_ns", Shown::CoreWait),
    ("memcg_dying", Shown::Dying),
    ("memcg_dying_bytes", Shown::DyingBytes),
    ("memcg_live", Shown::Live),
    ("napi_wait_ns", Shown::NapiWait),
    ("napi_starved", Shown::NapiStarved),
    ("unit_started", Shown::UnitStarted),
    ("unit_failed", Shown::UnitFailed),
    ("cgroup_born", Shown::CgroupBorn),
    ("cgroup_burst", Shown::CgroupBurst),
    ("container_started", Shown::ContainerStarted),
    ("container_exited", Shown::ContainerExited),
    ("container_running", Shown::ContainersRunning),
    ("process_failed", Shown::ProcessFailed),
    ("process_failed_burst", Shown::ProcessFailedBurst),
    ("pressure_cpu_some_ratio", Shown::PressureCpu),
    ("pressure_memory_some_ratio", Shown::PressureMemory),
    ("pressure_io_some_ratio", Shown::PressureIo),
    ("klog_event", Shown::KernelLine),
    ("nic_link", Shown::NicLink),
    ("sexton_wall_clock_ns", Shown::WallClock),
    ("sexton_poll_ns", Shown::Poll),
];

/// The sensors that must have been heard before "none" may be said of an event.
pub(crate) const UNITS: &str = "units";
/// See [`UNITS`].
pub(crate) const CGROUPS: &str = "cgroups";
/// See [`UNITS`].
pub(crate) const NAPI: &str = "napi";
/// See [`UNITS`].
pub(crate) const KLOG: &str = "klog";

/// See [`UNITS`].
pub(crate) const EXITS: &str = "exits";

/// What a fact is shown as; `None` when it is not.
pub(crate) fn shown(fact: &Fact) -> Option<Shown> {
    NAMES
        .iter()
        .find(|(name, _)| *name == fact.name)
        .map(|(_, shown)| *shown)
}

/// The facts of the table that this build defines.
pub(crate) fn defined() -> impl Iterator<Item = &'static Fact> {
    NAMES.iter().filter_map(|(name, _)| fact::by_name(name))
}
