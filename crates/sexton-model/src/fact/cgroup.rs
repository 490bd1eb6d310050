//! Facts about births, removals and releases of cgroups, all of the memory hierarchy
//! unless they say otherwise.

use super::metric::Metric;
use super::show::{CGROUPS_CREATED, Group, Mark, Series, Show};
use super::task::Task;
use crate::old;
use crate::payload::Fields;
use crate::subject::Subject;
use crate::{choice, payload};

choice! {
    /// What happened to cgroups.
    pub enum CgroupChange {
        /// They were created.
        Created = "cgroup_born",
        /// Their directories were removed.
        Removed = "cgroup_removed",
        /// The kernel released them.
        Released = "cgroup_released",
    }
}

payload! {
    /// A cgroup was created. Of a scope that systemd made for another process, `asker_*` is
    /// the process in it, or the nearest above, that is in another unit.
    @from_old(ancestry_from_old)
    pub struct CgroupCreated {
        /// its path, escaped
        pub path: String,
        /// the kernel's number of it
        pub id: Option<u64>,
        /// the kind of origin that the path shows
        pub origin: Option<String>,
        /// the unit that the path shows
        pub unit: Option<String>,
        /// the container that the path shows
        pub container: Option<String>,
        /// who created it
        pub creator_pid: Option<u32>,
        /// its name
        pub creator_comm: Option<String>,
        /// its own cgroup; `vanished` if it had exited before it was looked at
        pub creator_cgroup: Option<String>,
        /// its unit, or the nearest one above it
        pub creator_unit: Option<String>,
        /// the processes above it, nearest first
        pub creator_ancestry: Vec<Task>,
        /// who asked systemd for it
        pub asker_pid: Option<u32>,
        /// its name
        pub asker_comm: Option<String>,
        /// its unit
        pub asker_unit: Option<String>,
    }

    /// The directory of a cgroup was removed.
    pub struct CgroupRemoved {
        /// its path, escaped
        pub path: String,
        /// the kernel's number of it
        pub id: Option<u64>,
        /// the kind of origin that the path shows
        pub origin: Option<String>,
        /// the unit that the path shows
        pub unit: Option<String>,
        /// the container that the path shows
        pub container: Option<String>,
        /// who removed it
        pub remover_pid: Option<u32>,
        /// its name
        pub remover_comm: Option<String>,
        /// how long it existed, if its creation was seen
        pub lived_ns: Option<u64>,
    }

    /// The kernel released a cgroup.
    pub struct CgroupReleased {
        /// its path, escaped
        pub path: String,
        /// the kernel's number of it
        pub id: Option<u64>,
        /// the kind of origin that the path shows
        pub origin: Option<String>,
        /// the unit that the path shows
        pub unit: Option<String>,
        /// the container that the path shows
        pub container: Option<String>,
        /// how long it was dying, if its removal was seen
        pub dying_ns: Option<u64>,
    }

    /// More happened between two polls than is recorded one by one. The time is that of the
    /// first; of creations, so is the creator.
    @from_old(ancestry_from_old)
    pub struct CgroupBurst {
        /// what happened to them
        pub what: Option<CgroupChange>,
        /// the pattern of their paths; `(others)` for all that are left
        pub pattern: String,
        /// how many
        pub n: u64,
        /// who created the first
        pub creator_pid: Option<u32>,
        /// its name
        pub creator_comm: Option<String>,
        /// its own cgroup; `vanished` if it had exited before it was looked at
        pub creator_cgroup: Option<String>,
        /// its unit, or the nearest one above it
        pub creator_unit: Option<String>,
        /// the processes above it, nearest first
        pub creator_ancestry: Vec<Task>,
    }
}

/// Older recordings have `dockerd[812] < systemd[1]`.
fn ancestry_from_old(fields: &Fields) -> Fields {
    old::lists(fields, &[("creator_ancestry", " < ")])
}

fn created(_: &Subject, cgroup: &CgroupCreated) -> Option<Mark> {
    let by = [
        &cgroup.asker_unit,
        &cgroup.creator_unit,
        &cgroup.creator_comm,
    ];
    let text = match by.into_iter().flatten().next() {
        Some(by) => format!("{} by {by}", cgroup.path),
        None => cgroup.path.clone(),
    };
    Some(Mark::new(&CGROUPS_CREATED, text))
}

fn burst(_: &Subject, burst: &CgroupBurst) -> Option<Mark> {
    let is_creation = burst.what == Some(CgroupChange::Created);
    let text = format!("{} like {}", burst.n, burst.pattern);
    is_creation.then(|| Mark::new(&CGROUPS_CREATED, text).times(burst.n))
}

const fn count(id: &'static str, label: &'static str) -> Show {
    Show::Series(Series::line(id, Group::Units, label, "cgroups"))
}

facts! {
    /// a cgroup was created, and by whom
    event CGROUP_BORN = "cgroup_born" of CgroupCreated,
        shown: marks!(CgroupCreated, created);
    /// the directory of a cgroup was removed; until it is released it is dying
    event CGROUP_REMOVED = "cgroup_removed" of CgroupRemoved;
    /// the kernel released a removed cgroup
    event CGROUP_RELEASED = "cgroup_released" of CgroupReleased;
    /// more than is recorded one by one: how many of one pattern
    event CGROUP_BURST = "cgroup_burst" of CgroupBurst,
        shown: marks!(CgroupBurst, burst);
    /// cgroups created since the sensor began
    counter CGROUP_BIRTHS = "cgroup_births" in Count,
        shown: count("units.born", "cgroups created"),
        metric: Metric::counter("sexton_cgroups_created_total");
    /// cgroups removed since the sensor began
    counter CGROUP_REMOVALS = "cgroup_removals" in Count,
        shown: count("units.removed", "cgroups removed"),
        metric: Metric::counter("sexton_cgroups_removed_total");
    /// cgroups that the kernel released since the sensor began
    counter CGROUP_RELEASES = "cgroup_releases" in Count,
        metric: Metric::counter("sexton_cgroups_released_total");
    /// cgroups created in hierarchies without the memory controller since the sensor began
    counter CGROUP_BIRTHS_ELSEWHERE = "cgroup_births_elsewhere" in Count;
    /// cgroups removed since the sensor began that the kernel has not released
    gauge CGROUP_UNRELEASED = "cgroup_unreleased" in Count;
}
