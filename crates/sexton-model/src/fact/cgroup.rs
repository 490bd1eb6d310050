//! Facts about births, removals and releases of cgroups, all of the memory hierarchy
//! unless they say otherwise.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &CGROUP_BORN,
    &CGROUP_REMOVED,
    &CGROUP_RELEASED,
    &CGROUP_BURST,
    &CGROUP_BIRTHS,
    &CGROUP_REMOVALS,
    &CGROUP_RELEASES,
    &CGROUP_BIRTHS_ELSEWHERE,
    &CGROUP_UNRELEASED,
];

/// A cgroup was made.
///
/// Details: `path`, `id`, `origin` (its kind), `unit`, `container`, `creator_pid`,
/// `creator_comm`, `creator_cgroup` (`vanished` when it was gone before we looked),
/// `creator_unit` (its own, or the nearest one above it), `creator_ancestry` (names and
/// numbers, nearest first). Of a scope that systemd made for another: `asker_comm`,
/// `asker_pid` and `asker_unit`, the process in it or the nearest above that is in another
/// unit. What does not apply or is not known is left out.
pub static CGROUP_BORN: Fact = Fact {
    name: "cgroup_born",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a cgroup was made, and by whom",
};

/// The directory of a cgroup was removed.
///
/// Details: `path`, `id`, `origin`, `unit`, `container`, `remover_pid`, `remover_comm`,
/// `lived_ns` (when its birth was seen).
pub static CGROUP_REMOVED: Fact = Fact {
    name: "cgroup_removed",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "the directory of a cgroup was removed; until it is released it is dying",
};

/// The kernel let go of a cgroup.
///
/// Details: `path`, `id`, `origin`, `unit`, `container`, `dying_ns` (when its removal was
/// seen).
pub static CGROUP_RELEASED: Fact = Fact {
    name: "cgroup_released",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "the kernel let go of a removed cgroup",
};

/// More happened between two polls than is told one by one.
///
/// Details: `what` (the fact that would have told it), `pattern`, `n`; of births also
/// `creator_comm`, and of the first of them `creator_pid`, `creator_cgroup`,
/// `creator_unit` and `creator_ancestry`. The moment is that of the first.
pub static CGROUP_BURST: Fact = Fact {
    name: "cgroup_burst",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "too many cgroups to tell one by one: how many of one kind, and of what pattern",
};

/// Cgroups made since the sensor began.
pub static CGROUP_BIRTHS: Fact = Fact {
    name: "cgroup_births",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "cgroups made since the sensor began",
};

/// Cgroups removed since the sensor began.
pub static CGROUP_REMOVALS: Fact = Fact {
    name: "cgroup_removals",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "cgroups removed since the sensor began",
};

/// Cgroups the kernel let go of since the sensor began.
pub static CGROUP_RELEASES: Fact = Fact {
    name: "cgroup_releases",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "cgroups the kernel let go of since the sensor began",
};

/// Cgroups made in hierarchies without the memory controller.
pub static CGROUP_BIRTHS_ELSEWHERE: Fact = Fact {
    name: "cgroup_births_elsewhere",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "cgroups made in hierarchies without the memory controller since the sensor began",
};

/// Cgroups that were removed since the sensor began and not released yet.
pub static CGROUP_UNRELEASED: Fact = Fact {
    name: "cgroup_unreleased",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "cgroups removed since the sensor began that the kernel has not let go of",
};
