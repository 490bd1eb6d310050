//! How near this process is to the memory limit of its own cgroup (`MemoryMax=` of the unit,
//! `--memory` of a container), beyond which the kernel kills it.
//!
//! What counts is what the kernel cannot take back: not the page cache, which the ring fills up
//! to any limit, and not its own caches of inodes and names (`slab_reclaimable`; v1 does not say),
//! which a walk of `/proc` and `/sys` fills.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::process::Place;
use sexton_model::census::Hierarchy;

/// Of the limit. More than this is too near.
///
/// Chosen: an agent of 10 MiB was killed with a tenth to spare before it had looked; a judgement
/// takes some megabytes for a moment.
const NEAR: f64 = 0.75;

/// Of the limit. Below this a sensor may come back.
const ROOM: f64 = 0.6;

/// The files of our cgroup that say so.
#[derive(Debug, Clone)]
pub(crate) struct OwnLimit {
    limit: PathBuf,
    usage: PathBuf,
    stat: PathBuf,
}

/// Memory of a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Use {
    /// What the kernel cannot take back.
    pub(crate) bytes: u64,
    pub(crate) limit_bytes: u64,
}

impl Use {
    pub(crate) fn is_near(self) -> bool {
        self.bytes as f64 > self.limit_bytes as f64 * NEAR
    }

    pub(crate) fn has_room(self) -> bool {
        self.bytes as f64 <= self.limit_bytes as f64 * ROOM
    }
}

impl OwnLimit {
    /// None where our place in the hierarchy of the memory controller cannot be seen.
    pub(crate) fn find(host: &Host) -> Option<Self> {
        let memory = MemoryHierarchy::find(host).ok()??;
        let is_ours = |place: &Place| match memory.hierarchy {
            Hierarchy::V1 => place.controllers.split(',').any(|name| name == "memory"),
            Hierarchy::V2 => place.hierarchy == 0,
        };
        let place = Place::read_own(host).ok()?.into_iter().find(is_ours)?;
        let path = Path::new(OsStr::from_bytes(&place.path));
        let below = path.strip_prefix(&memory.part).ok()?;
        let folder = memory.mount?.join(below);
        let (limit, usage) = match memory.hierarchy {
            Hierarchy::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            Hierarchy::V2 => ("memory.max", "memory.current"),
        };
        Some(Self {
            limit: folder.join(limit),
            usage: folder.join(usage),
            stat: folder.join("memory.stat"),
        })
    }

    /// What is used now; none without a limit.
    pub(crate) fn used(&self, host: &Host) -> Option<Use> {
        let number = |path: &PathBuf| -> Option<u64> {
            let text = host.read_text(path).ok()?;
            text.trim().parse().ok()
        };
        let limit_bytes = number(&self.limit).filter(|bytes| *bytes < NO_LIMIT)?;
        let usage = number(&self.usage)?;
        let stat = host.read_text(&self.stat).ok()?;
        Some(Use {
            bytes: usage.saturating_sub(reclaimable(&stat)),
            limit_bytes,
        })
    }
}

/// No node has as much; v1 says so when there is none, v2 says `max`.
const NO_LIMIT: u64 = 1 << 60;

/// What the kernel can take back, of a `memory.stat`.
fn reclaimable(stat: &str) -> u64 {
    let lines = stat.lines().filter_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        let is_cache = matches!(name, "active_file" | "inactive_file" | "slab_reclaimable");
        is_cache.then(|| bytes.trim().parse::<u64>().ok())?
    });
    lines.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_files_and_caches_of_inodes_are_what_the_kernel_can_take_back() {
        let stat = "anon 30\nfile 70\ninactive_anon 30\nactive_file 40\ninactive_file 20\n\
                    slab_reclaimable 7\nslab_unreclaimable 5\nslab 12\ntotal_active_file 90\n";
        assert_eq!(reclaimable(stat), 67);
        assert_eq!(reclaimable(""), 0);
    }

    #[test]
    fn near_is_before_the_limit() {
        let near = |bytes| {
            Use {
                bytes,
                limit_bytes: 100,
            }
            .is_near()
        };
        assert_eq!([0, 75, 76, 100].map(near), [false, false, true, true]);
        let has_room = |bytes| {
            Use {
                bytes,
                limit_bytes: 100,
            }
            .has_room()
        };
        assert_eq!([0, 60, 61, 100].map(has_room), [true, true, false, false]);
    }
}
