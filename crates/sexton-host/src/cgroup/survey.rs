//! Which live directories lie above dying cgroups, as far as directories and their counters
//! tell. For kernels where nothing names the dying ones themselves.
//!
//! What a cgroup uses includes what all below it use, dying ones too. So on cgroup v1 what a
//! directory without processes uses beyond its live children and its own pages belongs to dead
//! ones below it. Totals of `memory.stat` do not tell: before 5.13 a child with few pages is
//! not in them. On cgroup v2 `cgroup.stat` counts the dying ones.

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
    /// Bytes beyond what the living use.
    pub orphan_bytes: u64,
    /// Bytes of the living: of its children, and on v1 its own.
    pub living_bytes: u64,
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
        // The root is above all of them, which says nothing.
        let mut parents: Vec<Parent> = (1..seen.len())
            .filter_map(|ix| parent(host, memory.hierarchy, &seen, ix))
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
    let used = number(host, &directory.join(file));
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

fn parent(host: &Host, hierarchy: Hierarchy, all: &[Seen], ix: usize) -> Option<Parent> {
    let seen = &all[ix];
    let beyond = seen.used_bytes.saturating_sub(seen.children_bytes);
    let n_dying = seen
        .n_dying
        .map(|n| n.saturating_sub(seen.n_dying_in_children));
    let (is_one, own) = match hierarchy {
        Hierarchy::V2 => (n_dying.is_some_and(|n| n > 0), Own::default()),
        Hierarchy::V1 if beyond < LEAST_BYTES || has_processes(host, &seen.directory) => {
            return None;
        }
        Hierarchy::V1 => {
            let own = Own::read(host, all, ix);
            (
                beyond >= own.pages_bytes + own.kernel_bytes + LEAST_BYTES,
                own,
            )
        }
    };
    is_one.then(|| Parent {
        directory: seen.directory.clone(),
        n_dying,
        orphan_bytes: beyond.saturating_sub(own.pages_bytes + own.kernel_bytes),
        living_bytes: seen.children_bytes + own.pages_bytes,
    })
}

/// What a directory of v1 uses itself.
#[derive(Debug, Default)]
struct Own {
    /// Page cache and anonymous memory.
    pages_bytes: u64,
    /// Kernel memory that no live child uses. Structures of children, dying ones too, are part
    /// of it from 5.9 on: no reclaim takes them, and nothing living misses them.
    kernel_bytes: u64,
}

impl Own {
    fn read(host: &Host, all: &[Seen], ix: usize) -> Self {
        let directory = &all[ix].directory;
        let stat = host.read_text(directory.join("memory.stat"));
        let stat = stat.unwrap_or_default();
        let field = |name: &str| -> u64 {
            let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
            let value = fields.find(|(known, _)| *known == name);
            value.and_then(|(_, n)| n.parse().ok()).unwrap_or(0)
        };
        let kernel = |directory: &Path| number(host, &directory.join("memory.kmem.usage_in_bytes"));
        let children = all.iter().filter(|one| one.parent == Some(ix));
        let of_children: u64 = children.map(|one| kernel(&one.directory)).sum();
        Self {
            pages_bytes: field("cache") + field("rss"),
            kernel_bytes: kernel(directory).saturating_sub(of_children),
        }
    }
}

/// A counter; 0 where there is none.
fn number(host: &Host, path: &Path) -> u64 {
    let text = host.read_text(path).ok();
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
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
