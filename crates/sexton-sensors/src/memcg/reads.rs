//! Takes the time of reads of a memory statistics file at several places.
//!
//! Where a read walks the dying cgroups, it is slow above them and quick beside them. That
//! comparison, and its growth with the census, is the proof that they cost a reader
//! anything, whatever the version of the kernel says.

use std::path::{Path, PathBuf};

use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::{Host, clock};
use sexton_model::census::{Census, CgroupIx, State};
use sexton_model::fact::memcg::{self as fact, MemcgReads};
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;
use sexton_model::text::escape;

use super::host_gap;
use crate::numa_stat;

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
    let whole = memory.filter(|memory| memory.part == Path::new("/"));
    let Some(mount) = whole.and_then(|memory| memory.mount) else {
        return;
    };
    let Some(root_ns) = least(host, &mount.join(FILE), first_ns) else {
        return;
    };
    let mut reads = MemcgReads {
        file: FILE.to_owned(),
        root_first_ns: first_ns,
        root_ns: Some(root_ns),
        dying: census.counts.dying,
        ..MemcgReads::default()
    };
    let leaf = leaf(census);
    let leaf_ns = leaf.and_then(|ix| least(host, &file_of(&mount, census, ix), None));
    if let (Some(leaf), Some(ns)) = (leaf, leaf_ns) {
        reads.leaf = Some(escape(&census.tree.path(leaf)));
        reads.leaf_ns = Some(ns);
    }
    let above = above.filter(|ix| census.tree.get(*ix).parent.is_some());
    let above_ns = above.and_then(|ix| least(host, &file_of(&mount, census, ix), None));
    if let (Some(above), Some(ns)) = (above, above_ns) {
        reads.ancestor = Some(escape(&census.tree.path(above)));
        reads.ancestor_dying = Some(census.dying_below(above));
        reads.ancestor_ns = Some(ns);
    }
    out.event(out.now(), &Subject::node(), &fact::MEMCG_READS, reads);
}

/// A live cgroup with nothing below it; one in use if there is one.
fn leaf(census: &Census) -> Option<CgroupIx> {
    let leaves = census.tree.iter().filter(|(_, cgroup)| {
        cgroup.state == State::Live && cgroup.parent.is_some() && !cgroup.has_children
    });
    let mut leaves = leaves.peekable();
    let any = leaves.peek().map(|(ix, _)| *ix);
    let used = leaves
        .find(|(_, cgroup)| cgroup.populated)
        .map(|(ix, _)| ix);
    used.or(any)
}

fn file_of(mount: &Path, census: &Census, ix: CgroupIx) -> PathBuf {
    folder_of(mount, census, ix).join(FILE)
}

fn folder_of(mount: &Path, census: &Census, ix: CgroupIx) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let path = census.tree.path(ix);
    let below = path.strip_prefix(b"/").unwrap_or(&path);
    mount.join(std::ffi::OsStr::from_bytes(below))
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

/// Reads the leaf's file, then the root's once: whoever asks has been told what that may cost.
pub(crate) fn time_numa_stat(host: &Host, census: &Census) -> Result<MemcgReads, Gap> {
    let file = numa_file(host)?;
    let mount = file.parent().unwrap_or(&file);
    let leaf = leaf(census).map(|ix| (ix, folder_of(mount, census, ix).join(NUMA_FILE)));
    let leaf_ns = leaf.as_ref().and_then(|(_, file)| least(host, file, None));
    let leaf = leaf.filter(|_| leaf_ns.is_some());
    let root_ns = time_once(host, &file).map_err(|error| host_gap(&error))?;
    Ok(MemcgReads {
        file: NUMA_FILE.to_owned(),
        root_ns: Some(root_ns),
        leaf: leaf.map(|(ix, _)| escape(&census.tree.path(ix))),
        leaf_ns,
        dying: census.counts.dying,
        ..MemcgReads::default()
    })
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
