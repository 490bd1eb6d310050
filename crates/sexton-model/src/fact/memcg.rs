//! Facts about memory cgroups.

use super::metric::{Holds, Label, MAX_NAMES, Metric};
use super::show::{Group, SECOND, Series, Show};
use crate::old;
use crate::payload;
use crate::payload::{Fields, Value, stored};

payload! {
    /// Files alike that pin dying memory cgroups.
    pub struct Pin {
        /// how many of them
        pub zombies: u64,
        /// `file`, `shmem` or another kind of page; `deleted-` before it if the file was removed
        pub kind: String,
        /// the path, or the pattern of paths that are alike
        pub path: String,
    }

    /// What a census knows of memory cgroups that are alike. The subject is their pattern.
    /// Counts of pages are of the dying ones.
    @from_old(pins_from_old)
    pub struct MemcgOrigin {
        /// the pattern, which is the subject too
        pub pattern: Option<String>,
        /// the path of one of them
        pub example: Option<String>,
        /// the kind of origin that the path shows
        pub kind: Option<String>,
        /// the unit that the path shows
        pub unit: Option<String>,
        /// the most frequent image of those that a runtime still knows
        pub image: Option<String>,
        /// how many are of that image
        pub n_image: Option<u64>,
        /// with a directory
        pub live: Option<u64>,
        /// removed, still held by the kernel
        pub dying: Option<u64>,
        /// live, empty, old and one of many alike
        pub leaked: Option<u64>,
        /// live, empty, and made within the last hour
        pub young_empty: Option<u64>,
        /// pages that keep the dying ones
        pub pages: Option<u64>,
        /// of these, pages of files
        pub file: Option<u64>,
        /// pages of tmpfs and shared memory
        pub shmem: Option<u64>,
        /// anonymous pages
        pub anon: Option<u64>,
        /// unevictable and swapped pages
        pub other: Option<u64>,
        /// dying ones that only their children keep
        pub held_by_children: Option<u64>,
        /// dying ones without a page of their own
        pub without_pin: Option<u64>,
        /// age of the oldest dying one
        pub oldest_seconds: Option<u64>,
        /// ages in seconds: the youngest, nine deciles, the oldest
        pub ages: Vec<u64>,
        /// the files that pin most of the dying ones
        pub pins: Vec<Pin>,
    }

    /// What one read of a statistics file costs at several places: a walk of the dying ones
    /// is slow above them and quick beside them. Each time but the first is the least of
    /// several reads in a row.
    pub struct MemcgReads {
        /// `memory.stat`, or on request `memory.numa_stat`
        pub file: String,
        /// first read of the root's file, which pays for what the kernel put off
        pub root_first_ns: Option<u64>,
        /// the root's file
        pub root_ns: Option<u64>,
        /// a live cgroup with nothing below it
        pub leaf: Option<String>,
        /// its file
        pub leaf_ns: Option<u64>,
        /// the nearest live cgroup above the most dying ones, unless that is the root
        pub ancestor: Option<String>,
        /// dying ones below it
        pub ancestor_dying: Option<u64>,
        /// where nothing names the dying ones: what it uses beyond the living
        pub ancestor_bytes: Option<u64>,
        /// its file
        pub ancestor_ns: Option<u64>,
        /// how many cgroups may be above dying ones; the slowest is recorded
        pub n_ancestors: Option<u64>,
        /// dying ones of the node
        pub dying: Option<u64>,
    }
}

/// Older recordings have `pin_1` to `pin_3`, each `211 shmem /dev/shm/out-<n>`.
fn pins_from_old(fields: &Fields) -> Fields {
    let mut fields = old::lists(fields, &[("ages", " ")]);
    let pins: Vec<Value> = ["pin_1", "pin_2", "pin_3"]
        .iter()
        .filter_map(|name| pin(stored(&fields, name)?.as_text()?))
        .collect();
    if !pins.is_empty() {
        fields.push(("pins".into(), Value::List(pins)));
    }
    fields
}

fn pin(text: &str) -> Option<Value> {
    let mut words = text.splitn(3, ' ');
    let names = ["zombies", "kind", "path"];
    let fields = names.map(|name| Some((name.into(), Value::Text(words.next()?.to_owned()))));
    Some(Value::Group(
        fields.into_iter().collect::<Option<Fields>>()?,
    ))
}

const fn census(id: &'static str, label: &'static str) -> Show {
    Show::Series(Series::line(id, Group::Memcg, label, "memcg").holding(120 * SECOND))
}

facts! {
    /// memory cgroups whose directory is gone but which the kernel still holds
    gauge MEMCG_DYING = "memcg_dying" in Count,
        shown: census("memcg.dying", "dying memory cgroups"),
        metric: Metric::gauge("sexton_memcg_dying");
    /// memory cgroups that have a directory
    gauge MEMCG_LIVE = "memcg_live" in Count,
        shown: census("memcg.live", "live memory cgroups"),
        metric: Metric::gauge("sexton_memcg_live");
    /// live memory cgroups that are empty, old and one of many alike
    gauge MEMCG_LEAKED = "memcg_leaked" in Count,
        shown: census("memcg.leaked", "leaked cgroup directories"),
        metric: Metric::gauge("sexton_memcg_leaked");
    /// kernel memory held by the structures of dying memory cgroups, at least
    gauge MEMCG_DYING_BYTES = "memcg_dying_bytes" in Bytes,
        shown: census("memcg.bytes", "memory held by dying cgroups"),
        metric: Metric::gauge("sexton_memcg_dying_bytes");
    /// time of the first read of the root's memory.stat, which pays for what the kernel put off
    gauge MEMCG_STAT_READ_NS = "memcg_stat_read_ns" in Nanoseconds,
        shown: census("memcg.read", "first read of memory.stat"),
        metric: Metric::gauge("sexton_memcg_stat_read_seconds");
    /// memory cgroups that are alike: how many are live, dying, leaked, and what pins them
    event MEMCG_ORIGIN = "memcg_origin" of MemcgOrigin,
        metric: Metric::gauge("sexton_memcg_origin_dying")
            .of("dying")
            .by(&[Label::subject("origin")], MAX_NAMES)
            .holding(Holds::Poll);
    /// read times of a memory statistics file: the root's, a leaf's, that of an ancestor of dying
    /// ones
    event MEMCG_READS = "memcg_reads" of MemcgReads;
}
