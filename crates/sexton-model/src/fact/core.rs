//! Facts about cores: where each one's time went. The ratios of one core and interval
//! add up to 1: time of guests is not counted as user or nice again, as `mpstat` does.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &CORE_USER_RATIO,
    &CORE_NICE_RATIO,
    &CORE_SYSTEM_RATIO,
    &CORE_IRQ_RATIO,
    &CORE_SOFTIRQ_RATIO,
    &CORE_IOWAIT_RATIO,
    &CORE_STEAL_RATIO,
    &CORE_GUEST_RATIO,
    &CORE_IDLE_RATIO,
    &CORE_UNACCOUNTED_RATIO,
    &CORE_OWN_RATIO,
    &CORE_WORST_BUSY_RATIO,
    &CORE_WORST_SYSTEM_RATIO,
    &CORE_ONLINE,
    &CORE_OFFLINE,
];

/// Time in programs.
pub static CORE_USER_RATIO: Fact = Fact {
    name: "core_user_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent in programs, guests and niced ones left out",
};

/// Time in niced programs.
pub static CORE_NICE_RATIO: Fact = Fact {
    name: "core_nice_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent in niced programs, guests left out",
};

/// Time in the kernel, interrupts left out.
pub static CORE_SYSTEM_RATIO: Fact = Fact {
    name: "core_system_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent in the kernel, interrupts left out",
};

/// Time in hard interrupts.
pub static CORE_IRQ_RATIO: Fact = Fact {
    name: "core_irq_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent in hard interrupts",
};

/// Time in soft interrupts.
pub static CORE_SOFTIRQ_RATIO: Fact = Fact {
    name: "core_softirq_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent in soft interrupts",
};

/// Idle time while I/O of a task of this core was under way.
pub static CORE_IOWAIT_RATIO: Fact = Fact {
    name: "core_iowait_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent idle while I/O of one of its tasks was under way",
};

/// Time that the hypervisor gave to others.
pub static CORE_STEAL_RATIO: Fact = Fact {
    name: "core_steal_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time that the hypervisor gave to others",
};

/// Time in guests, niced ones included.
pub static CORE_GUEST_RATIO: Fact = Fact {
    name: "core_guest_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent running guests, niced ones included",
};

/// Time with nothing to do.
pub static CORE_IDLE_RATIO: Fact = Fact {
    name: "core_idle_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time spent idle with no I/O under way",
};

/// Time that the kernel booked to nothing.
pub static CORE_UNACCOUNTED_RATIO: Fact = Fact {
    name: "core_unaccounted_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of the interval that the kernel booked to no mode of a core: interrupts off, \
           stopped by the hypervisor, or asleep",
};

/// Kernel time that sexton itself had, which is a part of the system time.
///
/// Told only where it is worth excluding. It covers what the other ratios of the core cover
/// that were told at the same moment.
pub static CORE_OWN_RATIO: Fact = Fact {
    name: "core_own_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "part of a core's time that the kernel worked for the recording sexton itself; \
           included in the system time",
};

/// The non-idle time of the busiest core, which is the subject.
pub static CORE_WORST_BUSY_RATIO: Fact = Fact {
    name: "core_worst_busy_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "non-idle part of the time of the core where it is greatest, which is the subject",
};

/// The kernel's time of the core that has most of it, which is the subject.
pub static CORE_WORST_SYSTEM_RATIO: Fact = Fact {
    name: "core_worst_system_ratio",
    unit: Unit::Ratio,
    kind: FactKind::Gauge,
    help: "system, irq and softirq part of the time of the core where it is greatest, which is \
           the subject",
};

/// A core came.
pub static CORE_ONLINE: Fact = Fact {
    name: "core_online",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a core was brought online",
};

/// A core went away.
pub static CORE_OFFLINE: Fact = Fact {
    name: "core_offline",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a core was taken offline",
};
