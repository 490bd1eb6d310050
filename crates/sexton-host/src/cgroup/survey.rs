//! Which live directories lie above dying cgroups, as far as directories and their counters
//! tell. For kernels where nothing names the dying ones themselves.
//!
//! What a cgroup uses includes what all below it use, dying ones too. So what a directory
//! without processes uses beyond its live children belongs to dead ones below it, or to what
//! ran there before. On cgroup v2 `cgroup.stat` counts them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sexton_model::census::Hierarchy;

use super::{CgroupStat, MemoryHierarchy};
use crate::{Host, HostError};

/// The most directories that are looked at: a node has hundreds, one that leaks them more than
/// are worth listing.
const MOST_DIRECTORIES: usize = 20_000;

/// The longest it may take.
const LONGEST: Duration = Duration::from_secs(2);

/// Directories with less than this beyond their children are not suspected: counters are read
/// one after the other while the node works.
const LEAST_BYTES: u64 = 16 << 10;

/// Leaves that are asked for their processes.
const MOST_ASKED: usize = 256;

/// What a look at the directories came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// A directory without children, in use if one is: nothing dying is below it.
    pub leaf: Option<PathBuf>,
    /// Directories above dying cgroups, those with most of them first.
    pub parents: Vec<Parent>,
    /// Whether all directories were looked at.
    pub is_whole: bool,
}

/// A live directory that has dying cgroups below it, as far as can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Where it is.
    pub directory: PathBuf,
    /// Dying cgroups below it and not below one of its live children, where the kernel counts
    /// them.
    pub n_dying: Option<u64>,
    /// Bytes beyond what live children use.
    pub orphan_bytes: u64,
    /// Bytes that live children use.
    pub children_bytes: u64,
}

/// One directory, as it was seen.
#[derive(Debug, Default)]
struct Seen {
    parent: Option<usize>,
    directory: PathBuf,
    n_children: usize,
    used_bytes: u64,
    children_bytes: u64,
    n_dying: Option<u64>,
    n_dying_in_children: u64,
}

impl Survey {
    /// Looks at the directories of a hierarchy.
    pub fn take(host: &Host, memory: &MemoryHierarchy) -> Result<Self, HostError> {
        let mount = memory
            .mount
            .as_ref()
            .ok_or(HostError::NotMounted("the memory hierarchy"))?;
        let (mut seen, is_whole) = list(host, mount)?;
        for ix in (1..seen.len()).rev() {
            count(host, memory.hierarchy, &mut seen, ix);
        }
        let leaf = leaf(host, &seen);
        let mut parents: Vec<Parent> = seen
            .iter()
            // Above the root there is nothing to compare with, and below it all else.
            .skip(1)
            .filter_map(|one| parent(host, memory.hierarchy, one))
            .filter(|parent| Some(&parent.directory) != leaf.as_ref())
            .collect();
        parents.sort_by(|a, b| {
            let most = |one: &Parent| (one.n_dying, one.orphan_bytes);
            most(b)
                .cmp(&most(a))
                .then_with(|| a.directory.cmp(&b.directory))
        });
        Ok(Self {
            leaf,
            parents,
            is_whole,
        })
    }
}

/// All directories, each after its parent, and whether that is all of them.
fn list(host: &Host, mount: &Path) -> Result<(Vec<Seen>, bool), HostError> {
    host.list(mount)?;
    let until = Instant::now() + LONGEST;
    let mut seen = vec![Seen {
        directory: mount.to_owned(),
        ..Seen::default()
    }];
    let mut at = 0;
    while at < seen.len() {
        if Instant::now() > until {
            return Ok((seen, false));
        }
        // One that was removed meanwhile has no children.
        let entries = host.list(&seen[at].directory).unwrap_or_default();
        for entry in entries.iter().filter(|entry| entry.is_dir) {
            if seen.len() == MOST_DIRECTORIES {
                return Ok((seen, false));
            }
            let directory = seen[at].directory.join(&entry.name);
            seen[at].n_children += 1;
            seen.push(Seen {
                parent: Some(at),
                directory,
                ..Seen::default()
            });
        }
        at += 1;
    }
    Ok((seen, true))
}

/// Reads the counters of one directory and adds them to its parent's.
fn count(host: &Host, hierarchy: Hierarchy, seen: &mut [Seen], ix: usize) {
    let file = match hierarchy {
        Hierarchy::V1 => "memory.usage_in_bytes",
        Hierarchy::V2 => "memory.current",
    };
    let directory = &seen[ix].directory;
    let used = host.read_text(directory.join(file)).ok();
    let used = used.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let n_dying = match hierarchy {
        Hierarchy::V1 => None,
        Hierarchy::V2 => CgroupStat::read(host, directory).ok().map(|s| s.dying()),
    };
    seen[ix].used_bytes = used;
    seen[ix].n_dying = n_dying;
    if let Some(parent) = seen[ix].parent {
        seen[parent].children_bytes += used;
        seen[parent].n_dying_in_children += n_dying.unwrap_or(0);
    }
}

fn parent(host: &Host, hierarchy: Hierarchy, seen: &Seen) -> Option<Parent> {
    let n_dying = seen
        .n_dying
        .map(|n| n.saturating_sub(seen.n_dying_in_children));
    let orphan_bytes = seen.used_bytes.saturating_sub(seen.children_bytes);
    let is_one = match hierarchy {
        Hierarchy::V2 => n_dying.is_some_and(|n| n > 0),
        Hierarchy::V1 => orphan_bytes >= LEAST_BYTES && !has_processes(host, &seen.directory),
    };
    is_one.then(|| Parent {
        directory: seen.directory.clone(),
        n_dying,
        orphan_bytes,
        children_bytes: seen.children_bytes,
    })
}

fn has_processes(host: &Host, directory: &Path) -> bool {
    let processes = host.read(directory.join("cgroup.procs"));
    processes.is_ok_and(|processes| !processes.is_empty())
}

/// A directory at the bottom with processes, else the one that uses least: what is empty and
/// yet uses much may lie above dead ones.
fn leaf(host: &Host, seen: &[Seen]) -> Option<PathBuf> {
    let leaves = seen.iter().skip(1).filter(|one| one.n_children == 0);
    let leaves: Vec<&Seen> = leaves.filter(|one| one.n_dying.unwrap_or(0) == 0).collect();
    let used = leaves
        .iter()
        .take(MOST_ASKED)
        .find(|one| has_processes(host, &one.directory));
    let least = leaves.iter().min_by_key(|one| one.used_bytes);
    used.or(least).map(|one| one.directory.clone())
}
