//! Facts about what samples of stacks show: who had a core, and what the kernel did for it.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[&PROCESS_ON_CORE, &STACK_SAMPLES, &STACK_SAMPLES_LOST];

/// A process had much of a core's time in the kernel, of the interval that ends now.
///
/// Told of the few processes that had the most of it. The subject is the process.
///
/// Details: `comm`, `cpu` (the core where most of its kernel samples were taken), `cgroup`,
/// `unit`, `samples` and `kernel_samples` (on all cores), `interval_ns`, `core_ratio` and
/// `kernel_ratio` (parts of one core's time: of all its samples, and of those in the kernel,
/// on that core), `hot_stack` (the kernel stack that was seen most, `outermost;...;innermost`)
/// and `hot_share` (its part of the kernel samples), `stack_1` to `stack_16` (the kernel stacks
/// that were seen most, each as its samples and the stack: `124 outermost;...;innermost`), `n_lost` (samples of all cores that were
/// lost in this interval; left out when none were), `own` (it is the process that records
/// this, which is told once for each core it was on; left out of all others). What is not known is left out.
pub static PROCESS_ON_CORE: Fact = Fact {
    name: "process_on_core",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a process had much of a core's time in the kernel: how much, and in which functions",
};

/// Samples that were taken.
pub static STACK_SAMPLES: Fact = Fact {
    name: "stack_samples",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "samples of stacks that were taken since the sensor began, those of idle cores included",
};

/// Samples that were lost.
pub static STACK_SAMPLES_LOST: Fact = Fact {
    name: "stack_samples_lost",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "samples of stacks that found no room, or whose stack did not, since the sensor began",
};
