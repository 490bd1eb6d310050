//! Takes the time of reads of a memory statistics file at several places.
//!
//! Where a read walks the dying cgroups, it is slow above them and quick beside them. That
//! comparison, and its growth with the census, is the proof that they cost a reader
//! anything, whatever the version of the kernel says. Where no census names the cgroups, the
//! places are chosen from the directories there are.

mod places;

use std::path::{Path, PathBuf};

use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::{Host, clock};
use sexton_model::census::{Census, CgroupIx};
use sexton_model::fact::memcg::{self as fact, MemcgReads};
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::host_gap;
use crate::numa_stat;
use places::Places;

/// The file that kubelet and its like poll. Never `memory.numa_stat`: on old kernels that
/// is the very walk that holds a core.
const FILE: &str = "memory.stat";

/// Read only where that is asked for.
const NUMA_FILE: &str = "memory.numa_stat";

/// Reads in a row, of which the least counts: the first after much work pays for what the
/// kernel put off, and any may be interrupted.
const READS: u32 = 5;

/// A read that took longer is not repeated: we are not to be what holds the core.
const ENOUGH_NS: u64 = 20_000_000;

/// After a longer read of the root's `memory.numa_stat` no other is asked for: it would be as
/// long again.
const TOO_LONG_NS: u64 = 2_000_000_000;

/// Reads the root's file once, as a reader would, and tells the time it took.
pub(super) fn time_the_root(host: &Host, node: &Subject, out: &mut Sink) -> Option<u64> {
    let memory = MemoryHierarchy::find(host).ok().flatten()?;
    match time_once(host, &memory.mount?.join(FILE)) {
        Ok(ns) => {
            out.sample(node, &fact::MEMCG_STAT_READ_NS, ns as f64);
            Some(ns)
        }
        Err(error) => {
            out.gap(node, host_gap(&error));
            None
        }
    }
}

/// Compares reads of the root's file, a leaf's, and that of a cgroup above dying ones.
pub(super) fn compare(
    host: &Host,
    census: &Census,
    above: Option<CgroupIx>,
    first_ns: Option<u64>,
    out: &mut Sink,
) {
    let memory = MemoryHierarchy::find(host).ok().flatten();
    // Paths of the census are those of the whole hierarchy.
    let Some(memory) = memory.filter(|memory| memory.part == Path::new("/")) else {
        return;
    };
    let Some(mount) = &memory.mount else {
        return;
    };
    let Some(root_ns) = least(host, &mount.join(FILE), first_ns) else {
        return;
    };
    let places = Places::choose(host, &memory, census, above);
    let mut reads = MemcgReads {
        file: FILE.to_owned(),
        root_first_ns: first_ns,
        root_ns: Some(root_ns),
        dying: census.counts.dying,
        ..MemcgReads::default()
    };
    places.time_leaf(host, FILE, &mut reads);
    let time = |directory: &Path| least(host, &directory.join(FILE), None);
    places.time_above(time, &mut reads);
    out.event(out.now(), &Subject::node(), &fact::MEMCG_READS, reads);
}

/// The root's file that may walk all dying cgroups. On v2 the root has none, and a read below
/// it walks nothing.
pub(crate) fn numa_file(host: &Host) -> Result<PathBuf, Gap> {
    let memory = MemoryHierarchy::find(host).map_err(|error| host_gap(&error))?;
    let mount = memory.and_then(|memory| memory.mount);
    let file = mount.map(|mount| mount.join(NUMA_FILE));
    let file = file.filter(|file| host.root().meta(file).is_ok());
    file.ok_or_else(numa_stat::absent)
}

/// Reads the leaf's file, then once the root's and that of a cgroup above dying ones: who asks
/// for it knows what that may cost.
pub(crate) fn time_numa_stat(host: &Host, census: &Census) -> Result<MemcgReads, Gap> {
    let file = numa_file(host)?;
    let memory = MemoryHierarchy::find(host).map_err(|error| host_gap(&error))?;
    let above = census.close_ups(1).first().and_then(|look| look.above);
    let places = memory.map(|memory| Places::choose(host, &memory, census, above));
    let places = places.unwrap_or_default();
    let mut reads = MemcgReads {
        file: NUMA_FILE.to_owned(),
        dying: census.counts.dying,
        ..MemcgReads::default()
    };
    places.time_leaf(host, NUMA_FILE, &mut reads);
    let root_ns = time_once(host, &file).map_err(|error| host_gap(&error))?;
    reads.root_ns = Some(root_ns);
    if root_ns < TOO_LONG_NS {
        let time = |directory: &Path| time_once(host, &directory.join(NUMA_FILE)).ok();
        places.time_above(time, &mut reads);
    }
    Ok(reads)
}

/// The least of several reads; `first` is one that was taken already.
fn least(host: &Host, path: &Path, first: Option<u64>) -> Option<u64> {
    let mut least = first;
    for _ in 0..READS {
        let ns = time_once(host, path).ok()?;
        least = Some(least.map_or(ns, |least| least.min(ns)));
        if ns > ENOUGH_NS {
            break;
        }
    }
    least
}

fn time_once(host: &Host, path: &Path) -> Result<u64, sexton_host::HostError> {
    let began = clock::now();
    host.read(path)?;
    let took = clock::now().since(began);
    Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
}
