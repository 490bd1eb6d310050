//! Facts about network polling.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &NAPI_WAIT_NS,
    &NAPI_DELAY_P50_NS,
    &NAPI_DELAY_P99_NS,
    &NAPI_DELAY_MAX_NS,
    &NAPI_TX_DELAY_MAX_NS,
    &NAPI_THREAD_DELAY_MAX_NS,
    &NAPI_POLL_GAP_NS,
    &NAPI_STARVED,
    &NAPI_SERVED,
];

/// How long polling work waits now.
pub static NAPI_WAIT_NS: Fact = Fact {
    name: "napi_wait_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "how long the oldest network polling work of this core, or of the node, has waited by now; 0 when none waits",
};

/// Half of the receive softirqs ran within this.
pub static NAPI_DELAY_P50_NS: Fact = Fact {
    name: "napi_delay_p50_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "half of the NET_RX softirqs of the interval ran within this time after they were raised, rounded up to a power of two",
};

/// 99 of 100 receive softirqs ran within this.
pub static NAPI_DELAY_P99_NS: Fact = Fact {
    name: "napi_delay_p99_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "99 of 100 NET_RX softirqs of the interval ran within this time after they were raised, rounded up to a power of two",
};

/// The longest delay of a receive softirq.
pub static NAPI_DELAY_MAX_NS: Fact = Fact {
    name: "napi_delay_max_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "the longest time from raise to run of a NET_RX softirq that ran in the interval",
};

/// The longest delay of a transmit softirq.
pub static NAPI_TX_DELAY_MAX_NS: Fact = Fact {
    name: "napi_tx_delay_max_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "the longest time from raise to run of a NET_TX softirq that ran in the interval",
};

/// The longest delay of a thread that polls.
pub static NAPI_THREAD_DELAY_MAX_NS: Fact = Fact {
    name: "napi_thread_delay_max_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "the longest time from wake to run of ksoftirqd or a threaded NAPI task that ran in the interval",
};

/// The longest time without a poll while work was left.
pub static NAPI_POLL_GAP_NS: Fact = Fact {
    name: "napi_poll_gap_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "the longest time in the interval that a NAPI instance with work left was not polled",
};

/// Network polling has waited too long on a core.
pub static NAPI_STARVED: Fact = Fact {
    name: "napi_starved",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "network polling has waited over half a second on this core; details: what, waited_ns, and, as far as they were seen, who had the core longest meanwhile: holder_pid, holder_comm, holder_since_ns (when it got the core, or the wait began if later), holder_ns, holder_own (it is the recording sexton itself; left out of all others), stack (outermost first, or [user])",
};

/// Network polling that had waited too long ran.
pub static NAPI_SERVED: Fact = Fact {
    name: "napi_served",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "network polling that had waited over half a second ran at last; details: what, waited_ns, and, as far as they were seen, who had the core longest meanwhile: holder_pid, holder_comm, holder_since_ns (when it got the core, or the wait began if later), holder_ns, holder_own",
};
