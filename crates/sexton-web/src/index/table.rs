//! Which facts make which lane of the time line.

use sexton_model::fact::container::CONTAINER_RUNNING;
use sexton_model::fact::{Fact, cgroup, container, core, exit, klog, memcg, napi, nic, pressure};
use sexton_model::fact::{runq, sexton, unit};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// Where a lane belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    /// Whether cores were busy.
    Cores,
    /// How much of a core the kernel had.
    Kernel,
    Memcg,
    Units,
    Containers,
    Network,
    Nic,
    Log,
    Pressure,
    Gaps,
}

/// How a lane is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LaneKind {
    Heat,
    Line,
    Events,
}

/// What its values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LaneUnit {
    Ratio,
    Count,
    Bytes,
    Ns,
    Events,
}

/// Whose values make the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The node's.
    Node,
    /// Anybody's: the largest counts.
    Anybody,
}

/// A lane of values, of one fact.
pub(super) struct SeriesSpec {
    pub(super) id: &'static str,
    pub(super) group: Group,
    pub(super) label: &'static str,
    pub(super) kind: LaneKind,
    pub(super) unit: LaneUnit,
    pub(super) fact: &'static Fact,
    pub(super) whose: Whose,
    /// A counter: the lane shows how much it grew.
    pub(super) grows: bool,
    pub(super) sensor: &'static str,
    /// The shortest time between two values that is kept apart.
    pub(super) cell_ns: u64,
    /// A value is of the time since the one before, if that is no longer ago.
    pub(super) cover_ns: u64,
    /// A value holds until the next one instead.
    pub(super) holds: bool,
}

const CORES: SeriesSpec = SeriesSpec {
    id: "cores.worst",
    group: Group::Cores,
    label: "worst core, kernel",
    kind: LaneKind::Heat,
    unit: LaneUnit::Ratio,
    fact: &core::CORE_WORST_SYSTEM_RATIO,
    whose: Whose::Anybody,
    grows: false,
    sensor: "cores",
    cell_ns: 100 * MS,
    cover_ns: 2500 * MS,
    holds: false,
};

const MEMCG: SeriesSpec = SeriesSpec {
    id: "memcg.dying",
    group: Group::Memcg,
    label: "dying memory cgroups",
    kind: LaneKind::Line,
    unit: LaneUnit::Count,
    fact: &memcg::MEMCG_DYING,
    whose: Whose::Node,
    grows: false,
    sensor: "memcg",
    cell_ns: SECOND,
    cover_ns: 120 * SECOND,
    holds: true,
};

const NETWORK: SeriesSpec = SeriesSpec {
    id: "network.wait",
    group: Group::Network,
    label: "oldest polling that waits",
    kind: LaneKind::Line,
    unit: LaneUnit::Ns,
    fact: &napi::NAPI_WAIT_NS,
    whose: Whose::Anybody,
    grows: false,
    sensor: "napi",
    cell_ns: 100 * MS,
    cover_ns: 5 * SECOND,
    holds: false,
};

const PRESSURE: SeriesSpec = SeriesSpec {
    id: "pressure.cpu",
    group: Group::Pressure,
    label: "tasks wait for a CPU",
    kind: LaneKind::Heat,
    unit: LaneUnit::Ratio,
    fact: &pressure::PRESSURE_CPU_SOME_RATIO,
    whose: Whose::Node,
    grows: false,
    sensor: "pressure",
    cell_ns: SECOND,
    cover_ns: 30 * SECOND,
    holds: false,
};

const CGROUPS: SeriesSpec = SeriesSpec {
    id: "units.born",
    group: Group::Units,
    label: "cgroups made",
    kind: LaneKind::Line,
    unit: LaneUnit::Count,
    fact: &cgroup::CGROUP_BIRTHS,
    whose: Whose::Node,
    grows: true,
    sensor: "cgroups",
    cell_ns: SECOND,
    cover_ns: 30 * SECOND,
    holds: false,
};

/// Lanes of values, in the order in which they are shown.
pub(super) static SERIES: &[SeriesSpec] = &[
    CORES,
    SeriesSpec {
        id: "cores.wait",
        label: "longest wait for a core",
        kind: LaneKind::Line,
        unit: LaneUnit::Ns,
        fact: &runq::RUNQ_DELAY_MAX_NS,
        sensor: "runq",
        cell_ns: SECOND,
        cover_ns: 5 * SECOND,
        ..CORES
    },
    MEMCG,
    SeriesSpec {
        id: "memcg.live",
        label: "live memory cgroups",
        fact: &memcg::MEMCG_LIVE,
        ..MEMCG
    },
    SeriesSpec {
        id: "memcg.leaked",
        label: "leaked memory cgroups",
        fact: &memcg::MEMCG_LEAKED,
        ..MEMCG
    },
    SeriesSpec {
        id: "memcg.bytes",
        label: "memory held by dying cgroups",
        unit: LaneUnit::Bytes,
        fact: &memcg::MEMCG_DYING_BYTES,
        ..MEMCG
    },
    SeriesSpec {
        id: "memcg.read",
        label: "one read of memory.stat",
        unit: LaneUnit::Ns,
        fact: &memcg::MEMCG_STAT_READ_NS,
        ..MEMCG
    },
    CGROUPS,
    SeriesSpec {
        id: "units.removed",
        label: "cgroups removed",
        fact: &cgroup::CGROUP_REMOVALS,
        ..CGROUPS
    },
    SeriesSpec {
        id: "containers.running",
        group: Group::Containers,
        label: "containers that run",
        fact: &CONTAINER_RUNNING,
        sensor: "containers",
        grows: false,
        holds: true,
        ..CGROUPS
    },
    NETWORK,
    SeriesSpec {
        id: "network.delay",
        label: "longest NET_RX delay",
        fact: &napi::NAPI_DELAY_MAX_NS,
        ..NETWORK
    },
    SeriesSpec {
        id: "network.gap",
        label: "longest gap of a queue's polling",
        fact: &napi::NAPI_POLL_GAP_NS,
        ..NETWORK
    },
    PRESSURE,
    SeriesSpec {
        id: "pressure.memory",
        label: "tasks wait for memory",
        fact: &pressure::PRESSURE_MEMORY_SOME_RATIO,
        ..PRESSURE
    },
    SeriesSpec {
        id: "pressure.memory.full",
        label: "all tasks wait for memory",
        fact: &pressure::PRESSURE_MEMORY_FULL_RATIO,
        ..PRESSURE
    },
    SeriesSpec {
        id: "pressure.io",
        label: "tasks wait for I/O",
        fact: &pressure::PRESSURE_IO_SOME_RATIO,
        ..PRESSURE
    },
    SeriesSpec {
        id: "pressure.io.full",
        label: "all tasks wait for I/O",
        fact: &pressure::PRESSURE_IO_FULL_RATIO,
        ..PRESSURE
    },
];

/// Modes of a core that are the kernel's.
pub(super) static KERNEL_MODES: [&Fact; 3] = [
    &core::CORE_SYSTEM_RATIO,
    &core::CORE_IRQ_RATIO,
    &core::CORE_SOFTIRQ_RATIO,
];

/// Modes of a core that has nothing to do.
pub(super) static IDLE_MODES: [&Fact; 2] = [&core::CORE_IDLE_RATIO, &core::CORE_IOWAIT_RATIO];

/// How core lanes behave.
pub(super) const CORE_CELL_NS: u64 = CORES.cell_ns;
pub(super) const CORE_COVER_NS: u64 = CORES.cover_ns;
pub(super) const CORE_SENSOR: &str = CORES.sensor;

/// A lane of events.
pub(super) struct EventSpec {
    pub(super) id: &'static str,
    pub(super) group: Group,
    pub(super) label: &'static str,
    pub(super) sensors: &'static [&'static str],
    pub(super) about: &'static str,
}

pub(super) const RESTARTS: &str = "units.restarts";
pub(super) const STARTS: &str = "units.starts";
pub(super) const CHURN: &str = "units.churn";
pub(super) const BIRTHS: &str = "containers.births";
pub(super) const EXITS: &str = "containers.exits";
pub(super) const STARVED: &str = "network.starved";
pub(super) const NIC: &str = "nic.events";
pub(super) const LOG: &str = "log.kernel";
pub(super) const FAILED: &str = "log.exits";
pub(super) const GAPS: &str = "gaps";

/// Lanes of events, in the order in which they are shown.
pub(super) static EVENTS: &[EventSpec] = &[
    EventSpec {
        id: RESTARTS,
        group: Group::Units,
        label: "units restarted or failed",
        sensors: &["units"],
        about: "starts that systemd itself caused, and failures",
    },
    EventSpec {
        id: STARTS,
        group: Group::Units,
        label: "units started otherwise",
        sensors: &["units"],
        about: "starts by hand, timer, socket or dependency",
    },
    EventSpec {
        id: CHURN,
        group: Group::Units,
        label: "cgroups born",
        sensors: &["cgroups"],
        about: "each cgroup that was made, and by whom",
    },
    EventSpec {
        id: BIRTHS,
        group: Group::Containers,
        label: "containers started",
        sensors: &["containers"],
        about: "each start of a container, as its runtime tells",
    },
    EventSpec {
        id: EXITS,
        group: Group::Containers,
        label: "containers exited",
        sensors: &["containers"],
        about: "each end of a container, as its runtime tells",
    },
    EventSpec {
        id: STARVED,
        group: Group::Network,
        label: "polling starved",
        sensors: &["napi"],
        about: "polling that waited over half a second, and who held the core",
    },
    EventSpec {
        id: NIC,
        group: Group::Nic,
        label: "network devices",
        sensors: &["klog", "nics"],
        about: "resets, time-outs and links, from the kernel's log and the driver's counters",
    },
    EventSpec {
        id: LOG,
        group: Group::Log,
        label: "the kernel complains",
        sensors: &["klog"],
        about: "lines of the kernel's log whose wording is known, network devices left out",
    },
    EventSpec {
        id: FAILED,
        group: Group::Log,
        label: "processes failed",
        sensors: &["exits"],
        about: "processes that ended by a signal or with a status that is not 0",
    },
    EventSpec {
        id: GAPS,
        group: Group::Gaps,
        label: "not seen",
        sensors: &[],
        about: "what sensors could not see",
    },
];

/// Counters of network devices whose growth is an event.
pub(super) static NIC_COUNTERS: [(&Fact, &str); 5] = [
    (&nic::NIC_RESETS, "resets"),
    (&nic::NIC_TX_TIMEOUTS, "stuck transmit queues"),
    (
        &nic::NIC_DRIVER_TX_TIMEOUTS,
        "stuck transmit queues, by the driver",
    ),
    (&nic::NIC_MISSED_COMPLETIONS, "missed completions"),
    (&nic::NIC_KEEP_ALIVE_TIMEOUTS, "missed signs of life"),
];

/// What sensors without a lane of values say at every look: they see again.
static SIGNS_OF_LIFE: [&Fact; 4] = [
    &unit::UNITS,
    &klog::KLOG_LINES,
    &nic::NIC_LINK_UP,
    &exit::PROCESS_EXITS_NORMAL,
];

/// All facts that a time line needs, and what its times mean.
pub(crate) fn facts() -> Vec<&'static Fact> {
    let mut facts: Vec<&'static Fact> = SERIES.iter().map(|spec| spec.fact).collect();
    facts.extend(KERNEL_MODES);
    facts.extend(IDLE_MODES);
    facts.extend(NIC_COUNTERS.iter().map(|(fact, _)| *fact));
    facts.extend(SIGNS_OF_LIFE);
    facts.extend([
        &sexton::SEXTON_WALL_CLOCK_NS,
        &memcg::MEMCG_ORIGIN,
        &memcg::MEMCG_READS,
        &unit::UNIT_STARTED,
        &unit::UNIT_FAILED,
        &cgroup::CGROUP_BORN,
        &cgroup::CGROUP_BURST,
        &container::CONTAINER_STARTED,
        &container::CONTAINER_EXITED,
        &napi::NAPI_STARVED,
        &napi::NAPI_SERVED,
        &nic::NIC_LINK,
        &klog::KLOG_EVENT,
        &exit::PROCESS_FAILED,
        &exit::PROCESS_FAILED_BURST,
    ]);
    facts
}
