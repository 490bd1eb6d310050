//! The facts that the view shows. What has no place in a panel of its own is shown by what
//! its definition says.

use sexton_model::fact::show::{Series, Show};
use sexton_model::fact::{self, Fact};
use sexton_model::fact::{cgroup, container, core, exit, klog, memcg, napi, nic};
use sexton_model::fact::{pressure, runq, sexton, unit};

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
    /// Anything else that has a place on the time line: the fact of this name.
    Other(&'static str),
}

/// The facts that a panel of their own shows, and as what.
static PANELS: &[(&Fact, Shown)] = &[
    (&core::CORE_SYSTEM_RATIO, Shown::CoreSystem),
    (&core::CORE_IRQ_RATIO, Shown::CoreInterrupts),
    (&core::CORE_SOFTIRQ_RATIO, Shown::CoreInterrupts),
    (&core::CORE_WORST_SYSTEM_RATIO, Shown::WorstSystem),
    (&runq::RUNQ_WAITING_NS, Shown::CoreWait),
    (&memcg::MEMCG_DYING, Shown::Dying),
    (&memcg::MEMCG_DYING_BYTES, Shown::DyingBytes),
    (&memcg::MEMCG_LIVE, Shown::Live),
    (&napi::NAPI_WAIT_NS, Shown::NapiWait),
    (&napi::NAPI_STARVED.fact, Shown::NapiStarved),
    (&unit::UNIT_STARTED.fact, Shown::UnitStarted),
    (&unit::UNIT_FAILED.fact, Shown::UnitFailed),
    (&cgroup::CGROUP_BORN.fact, Shown::CgroupBorn),
    (&cgroup::CGROUP_BURST.fact, Shown::CgroupBurst),
    (&container::CONTAINER_STARTED.fact, Shown::ContainerStarted),
    (&container::CONTAINER_EXITED.fact, Shown::ContainerExited),
    (&container::CONTAINER_RUNNING, Shown::ContainersRunning),
    (&exit::PROCESS_FAILED.fact, Shown::ProcessFailed),
    (&exit::PROCESS_FAILED_BURST.fact, Shown::ProcessFailedBurst),
    (&pressure::PRESSURE_CPU_SOME_RATIO, Shown::PressureCpu),
    (&pressure::PRESSURE_MEMORY_SOME_RATIO, Shown::PressureMemory),
    (&pressure::PRESSURE_IO_SOME_RATIO, Shown::PressureIo),
    (&klog::KLOG_EVENT.fact, Shown::KernelLine),
    (&nic::NIC_LINK.fact, Shown::NicLink),
    (&sexton::SEXTON_WALL_CLOCK_NS, Shown::WallClock),
    (&sexton::SEXTON_POLL_NS, Shown::Poll),
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
pub(crate) fn shown(fact: &'static Fact) -> Option<Shown> {
    let known = PANELS.iter().find(|(known, _)| *known == fact);
    match (known, &fact.show) {
        (Some((_, shown)), _) => Some(*shown),
        (None, Show::Series(_) | Show::Growth(..) | Show::Marks(_)) => {
            Some(Shown::Other(fact.name))
        }
        (None, Show::Core(_) | Show::Not) => None,
    }
}

/// All facts that are shown.
pub(crate) fn all() -> impl Iterator<Item = &'static Fact> {
    fact::all().filter(|fact| shown(fact).is_some())
}

/// Those with values that no panel of their own shows.
pub(crate) fn other_series() -> impl Iterator<Item = (&'static Fact, &'static Series)> {
    fact::all().filter_map(|fact| match (&fact.show, shown(fact)) {
        (Show::Series(series), Some(Shown::Other(_))) => Some((fact, series)),
        _ => None,
    })
}
