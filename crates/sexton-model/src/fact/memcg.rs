//! Facts about memory cgroups.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &MEMCG_LIVE,
    &MEMCG_DYING,
    &MEMCG_LEAKED,
    &MEMCG_DYING_BYTES,
    &MEMCG_STAT_READ_NS,
    &MEMCG_ORIGIN,
    &MEMCG_READS,
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

/// What a census knows of cgroups that are alike; told at every census for those with
/// most dying, and for those with most leaked ones.
///
/// Details: `pattern` (also the subject), `example` (the path of one of them), `kind`,
/// `unit`, `image` and `n_image` (the most frequent of those that a runtime still knows),
/// `live`, `dying`, `leaked`; of the dying ones `pages`, `file`, `shmem`, `anon`, `other`
/// (pages by what they are), `held_by_children`, `without_pin`, `oldest_seconds`, `ages`
/// (seconds: the youngest, nine deciles, the oldest), and `pin_1` to `pin_3` (the files
/// that pin most of them: how many, the kind, the path). What is not known is left out.
pub static MEMCG_ORIGIN: Fact = Fact {
    name: "memcg_origin",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "memory cgroups that are alike: how many are live, dying, leaked, and what pins them",
};

/// What one read of a statistics file costs at several places, for comparison: a walk of
/// the dying ones is slow above them and quick beside them.
///
/// Details: `file` (`memory.stat`; `memory.numa_stat` only where it was asked for),
/// `root_first_ns` (the first read, which pays for what was put off), `root_ns`, `leaf`
/// and `leaf_ns` (a live cgroup with nothing below it), `ancestor`, `ancestor_dying` and
/// `ancestor_ns` (the nearest live cgroup above the most dying ones, with how many lie
/// below it; left out when that is the root), `ancestor_bytes` (where nothing names the dying
/// ones: what it uses beyond the living), `n_ancestors` (how many cgroups may lie above dying ones;
/// the slowest is told), `dying` (of the node). Each `_ns` but the
/// first is the least of five reads in a row. What is not known is left out.
pub static MEMCG_READS: Fact = Fact {
    name: "memcg_reads",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "read times of a memory statistics file: the root's, a leaf's, that of an ancestor of dying ones",
};
