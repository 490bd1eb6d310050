//! Facts about sexton itself.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &SEXTON_POLL_NS,
    &SEXTON_WALL_CLOCK_NS,
    &SEXTON_CLOCK_JUMP,
    &SEXTON_STEP_DOWN,
];

/// How long a poll of a sensor took.
pub static SEXTON_POLL_NS: Fact = Fact {
    name: "sexton_poll_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "how long one poll of a sensor took",
};

/// What the wall clock said, in nanoseconds since 1970.
pub static SEXTON_WALL_CLOCK_NS: Fact = Fact {
    name: "sexton_wall_clock_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "the wall clock, in nanoseconds since 1970, at this moment of the clock of the recording",
};

/// The wall clock was set.
pub static SEXTON_CLOCK_JUMP: Fact = Fact {
    name: "sexton_clock_jump",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "the wall clock was set: it moved against the clock of the recording",
};

/// A sensor sees something by lesser means, because the best does not work on this kernel.
///
/// The subject is the sensor. Details: `what` (stacks, dying cgroups) and `by` (perf events,
/// counts), as they are shown: "stacks by perf events".
pub static SEXTON_STEP_DOWN: Fact = Fact {
    name: "sexton_step_down",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a sensor sees something by lesser means than the best: what, and by which",
};
