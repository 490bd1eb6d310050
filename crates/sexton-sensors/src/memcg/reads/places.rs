//! Where reads are timed: beside the dying cgroups, and above them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::cgroup::survey::Survey;
use sexton_model::census::{Census, CgroupIx, Method, State};
use sexton_model::fact::memcg::MemcgReads;
use sexton_model::text::escape;

use super::least;

/// A cgroup by its directory and by its path in the hierarchy.
#[derive(Debug)]
struct Place {
    directory: PathBuf,
    path: Vec<u8>,
}

/// A leaf, and cgroups that may be above most dying ones.
#[derive(Debug, Default)]
pub(super) struct Places {
    leaf: Option<Place>,
    above: Vec<Above>,
    /// How many there are of those.
    n_above: usize,
}

/// Where counters alone tell, this many of those that use most are timed: a few dead cgroups with
/// much cache use more than many with a page each.
const MOST_TIMED: usize = 3;

/// A cgroup above dying ones, with what is known of those.
#[derive(Debug)]
struct Above {
    place: Place,
    n_dying: Option<u64>,
    orphan_bytes: Option<u64>,
}

impl Places {
    /// By the census where it names cgroups, else by the directories.
    pub(super) fn choose(
        host: &Host,
        memory: &MemoryHierarchy,
        census: &Census,
        above: Option<CgroupIx>,
    ) -> Self {
        let Some(mount) = &memory.mount else {
            return Self::default();
        };
        match census.method {
            Method::BpfWalk => Self::of_census(mount, census, above),
            _ => Self::of_directories(host, memory).unwrap_or_default(),
        }
    }

    fn of_census(mount: &Path, census: &Census, above: Option<CgroupIx>) -> Self {
        let place = |ix| {
            let path = census.tree.path(ix);
            let below = path.strip_prefix(b"/").unwrap_or(&path);
            Place {
                directory: mount.join(OsStr::from_bytes(below)),
                path,
            }
        };
        let above = above.filter(|ix| census.tree.get(*ix).parent.is_some());
        Self {
            leaf: leaf(census).map(place),
            n_above: above.into_iter().count(),
            above: above
                .map(|ix| Above {
                    place: place(ix),
                    n_dying: Some(census.dying_below(ix)),
                    orphan_bytes: None,
                })
                .into_iter()
                .collect(),
        }
    }

    fn of_directories(host: &Host, memory: &MemoryHierarchy) -> Option<Self> {
        let survey = Survey::take(host, memory).ok()?;
        let place = |directory: PathBuf| Place {
            path: memory.path_of(&directory),
            directory,
        };
        let n_above = survey.parents.len();
        let most = survey.parents.into_iter().take(MOST_TIMED);
        Some(Self {
            leaf: survey.leaf.map(place),
            above: most
                .map(|most| Above {
                    place: place(most.directory),
                    n_dying: most.n_dying,
                    orphan_bytes: Some(most.orphan_bytes),
                })
                .collect(),
            n_above,
        })
    }

    /// What a read of the leaf's file takes.
    pub(super) fn time_leaf(&self, host: &Host, file: &str, reads: &mut MemcgReads) {
        let Some(leaf) = &self.leaf else {
            return;
        };
        reads.leaf_ns = least(host, &leaf.directory.join(file), None);
        reads.leaf = reads.leaf_ns.map(|_| escape(&leaf.path));
    }

    /// What a read above dying ones takes, by a way to take the time of it: the slowest.
    pub(super) fn time_above(&self, time: impl Fn(&Path) -> Option<u64>, reads: &mut MemcgReads) {
        let timed = self.above.iter();
        let timed = timed.filter_map(|above| Some((time(&above.place.directory)?, above)));
        // The first of those alike has most.
        let timed: Vec<(u64, &Above)> = timed.collect();
        let Some((ns, above)) = timed.iter().rev().max_by_key(|(ns, _)| *ns) else {
            return;
        };
        reads.ancestor = Some(escape(&above.place.path));
        reads.ancestor_dying = above.n_dying;
        reads.ancestor_bytes = above.orphan_bytes;
        reads.ancestor_ns = Some(*ns);
        reads.n_ancestors = Some(self.n_above as u64);
    }
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
