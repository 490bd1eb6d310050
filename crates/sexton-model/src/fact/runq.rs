//! Facts about waiting for a core.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &RUNQ_DELAY_P50_NS,
    &RUNQ_DELAY_P99_NS,
    &RUNQ_DELAY_MAX_NS,
    &RUNQ_WAITING_TASKS,
    &RUNQ_WAITING_NS,
    &RUNQ_WAIT,
    &RUNQ_WAITING,
    &RUNQ_LONGEST,
];

/// Half of the waits for this core were at most this long.
pub static RUNQ_DELAY_P50_NS: Fact = Fact {
    name: "runq_delay_p50_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "half of the waits for this core that ended in the interval were at most this long, rounded up to a power of two",
};

/// 99 of 100 waits for this core were at most this long.
pub static RUNQ_DELAY_P99_NS: Fact = Fact {
    name: "runq_delay_p99_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "99 of 100 waits for this core that ended in the interval were at most this long, rounded up to a power of two",
};

/// The longest wait for this core.
pub static RUNQ_DELAY_MAX_NS: Fact = Fact {
    name: "runq_delay_max_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "the longest wait for this core that ended in the interval; below one millisecond, rounded up to a power of two",
};

/// Tasks that have waited too long and still do.
pub static RUNQ_WAITING_TASKS: Fact = Fact {
    name: "runq_waiting_tasks",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "tasks that could run but have waited over 100 ms for a core and still do; a CPU quota makes tasks wait too",
};

/// How long the oldest of those has waited.
pub static RUNQ_WAITING_NS: Fact = Fact {
    name: "runq_waiting_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "how long the task that waits longest for a core has waited by now; 0 when none waits over 100 ms",
};

/// A task got a core after too long a wait.
pub static RUNQ_WAIT: Fact = Fact {
    name: "runq_wait",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a task that could run waited over 100 ms for this core; details: pid, comm, waited_ns, and who ran longest meanwhile: holder_pid, holder_comm, holder_ns",
};

/// A task waits too long and still does.
pub static RUNQ_WAITING: Fact = Fact {
    name: "runq_waiting",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a task that could run has waited over 100 ms for this core and still does; details: pid, comm, waited_ns, and who runs there now: holder_pid, holder_comm",
};

/// The longest wait of an interval.
pub static RUNQ_LONGEST: Fact = Fact {
    name: "runq_longest",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "the longest wait for any core that ended in the interval, from 10 to 100 ms; details as of runq_wait",
};
