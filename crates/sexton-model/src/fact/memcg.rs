//! Facts about memory cgroups.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &MEMCG_LIVE,
    &MEMCG_DYING,
    &MEMCG_LEAKED,
    &MEMCG_DYING_BYTES,
    &MEMCG_STAT_READ_NS,
];

/// Memory cgroups that have a directory.
pub static MEMCG_LIVE: Fact = Fact {
    name: "memcg_live",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "memory cgroups that have a directory",
};

/// Memory cgroups whose directory is gone but which the kernel still holds.
pub static MEMCG_DYING: Fact = Fact {
    name: "memcg_dying",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "memory cgroups whose directory is gone but which the kernel still holds",
};

/// Memory cgroups with a directory that looks forgotten.
pub static MEMCG_LEAKED: Fact = Fact {
    name: "memcg_leaked",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "live memory cgroups that are empty, old and one of many alike",
};

/// Kernel memory of the structures of dying memory cgroups, at least.
pub static MEMCG_DYING_BYTES: Fact = Fact {
    name: "memcg_dying_bytes",
    unit: Unit::Bytes,
    kind: FactKind::Gauge,
    help: "kernel memory held by the structures of dying memory cgroups, at least",
};

/// What readers pay: the time of one read of the root's `memory.stat`.
pub static MEMCG_STAT_READ_NS: Fact = Fact {
    name: "memcg_stat_read_ns",
    unit: Unit::Nanoseconds,
    kind: FactKind::Gauge,
    help: "time of one read of the root's memory.stat, the file that readers poll",
};
