//! The census: every memory cgroup a node has, the dying ones with what keeps
//! them alive, and the groups of alike ones that people talk about.

mod close_up;
mod files;
mod grouping;
mod tree;

use std::collections::HashMap;

use crate::gap::Gap;

pub use close_up::{CloseUp, OriginPin};
pub use files::{Device, FileGroup, FileKind, Pin, PinFile, alike_files};
pub use grouping::{OriginGroup, UnitGroup, by_unit};
pub use tree::{Cgroup, CgroupIx, CgroupTree, Pages, State};

/// Which kind of hierarchy the memory controller is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// cgroup v1, a hierarchy of its own.
    V1,
    /// cgroup v2, the unified hierarchy.
    V2,
}

/// How a census was taken, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// A BPF program walks the kernel's own tree.
    BpfWalk,
    /// `cgroup.stat` of cgroup v2, down to the directories below which they lie.
    CgroupStat,
    /// Pages that are charged to live cgroups but are not their own (`/proc/kpagecgroup`).
    PageOwnership,
    /// The count in `/proc/cgroups` less the directories there are.
    ProcCgroups,
}

impl Method {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::BpfWalk => "bpf-walk",
            Self::CgroupStat => "cgroup-stat",
            Self::PageOwnership => "page-ownership",
            Self::ProcCgroups => "proc-cgroups",
        }
    }

    /// What this way shows.
    pub fn shows(self) -> &'static str {
        match self {
            Self::BpfWalk => "every one by path, its pages, the files that pin it",
            Self::CgroupStat => "counts per live directory; no names, no pins",
            Self::PageOwnership => {
                "parents of dying ones, by pages that are not their own; one count"
            }
            Self::ProcCgroups => "one count for the node; no names, no pins",
        }
    }
}

/// How many there are. `None` is unknown, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// With a directory.
    pub live: Option<u64>,
    /// Without a directory, still held by the kernel.
    pub dying: Option<u64>,
    /// Those of the live ones that look forgotten.
    pub leaked: Option<u64>,
    /// All that were seen.
    pub total: Option<u64>,
    /// All there are by the kernel's own count.
    pub kernel_total: Option<u64>,
}

/// What a way of looking would have said, or did say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The way.
    pub method: Method,
    /// The dying ones it counts, if it was tried and could.
    pub dying: Option<u64>,
    /// Why it was not used, or how its answer differs.
    pub remark: String,
}

/// Kernel memory of dead structures, from the kernel's own type information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of one dying cgroup's structures, at least.
    pub bytes_per_cgroup: u64,
    /// CPUs that the kernel keeps counters for.
    pub n_cpus: u32,
    /// NUMA nodes that the kernel keeps lists for.
    pub n_nodes: u32,
}

/// A census of the memory cgroups of a node.
#[derive(Debug)]
pub struct Census {
    /// How it was taken.
    pub method: Method,
    /// Where the memory controller is.
    pub hierarchy: Hierarchy,
    /// The totals.
    pub counts: Counts,
    /// Every memory cgroup, where the method shows them.
    pub tree: CgroupTree,
    /// Alike ones together, most dying first.
    pub origins: Vec<OriginGroup>,
    /// The place of each cgroup's group in `origins`, in the order of the tree.
    pub origin_of: Vec<u32>,
    /// The files that pin dying ones, those that pin most first.
    pub files: Vec<PinFile>,
    /// Which file pins which cgroup, in the order of the tree.
    pub pins: Vec<Pin>,
    /// Only part of the pages was looked at, so file pages are a lower bound.
    pub sampled: bool,
    /// What the structures of the dying ones cost.
    pub cost: Option<Cost>,
    /// The bytes of a page.
    pub page_bytes: u64,
    /// All ways of looking, the used one included.
    pub looks: Vec<Look>,
    /// What could not be seen.
    pub gaps: Vec<Gap>,
}

impl Census {
    /// A census that saw nothing yet.
    pub fn new(method: Method, hierarchy: Hierarchy, page_bytes: u64) -> Self {
        Self {
            method,
            hierarchy,
            counts: Counts::default(),
            tree: CgroupTree::default(),
            origins: Vec::new(),
            origin_of: Vec::new(),
            files: Vec::new(),
            pins: Vec::new(),
            sampled: false,
            cost: None,
            page_bytes,
            looks: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Counts and groups what is in the tree. `images` maps the ids of containers
    /// that a runtime still knows to their images.
    pub fn summarize(&mut self, images: &HashMap<String, String>) {
        grouping::mark_leaked(&mut self.tree);
        let count = |state| self.tree.iter().filter(|(_, c)| c.state == state).count() as u64;
        let (dying, leaked) = (count(State::Dying), count(State::Leaked));
        let total = self.tree.len() as u64;
        self.counts.live = Some(total - dying);
        self.counts.dying = Some(dying);
        self.counts.leaked = Some(leaked);
        self.counts.total = Some(total);
        (self.origins, self.origin_of) = grouping::origins(&self.tree, images);
    }

    /// Bytes that the structures of the dying ones take, at least.
    pub fn structure_bytes(&self) -> Option<u64> {
        Some(self.cost?.bytes_per_cgroup * self.counts.dying?)
    }

    /// Pages that the dying ones still hold, in memory or in swap.
    pub fn dying_pages(&self) -> Pages {
        let dying = self.tree.iter().filter(|(_, c)| c.state == State::Dying);
        dying.fold(Pages::default(), |sum, (_, cgroup)| sum + cgroup.pages)
    }
}
