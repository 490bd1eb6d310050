//! The tree of memory cgroups, stored so that a hundred thousand fit easily.

use std::ops::{Add, AddAssign};

/// Index of a cgroup in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupIx(u32);

/// What has become of a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Has a directory.
    Live,
    /// Has a directory, but is empty, old, and one of many alike.
    Leaked,
    /// Its memory state was shut down, and the kernel still holds it.
    Dying,
}

impl State {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Leaked => "leaked",
            Self::Dying => "dying",
        }
    }
}

/// Pages of a cgroup itself, without those of its children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pages {
    /// Page cache of files.
    pub file: u64,
    /// tmpfs files, shared memory, memfds.
    pub shmem: u64,
    /// Anonymous memory.
    pub anon: u64,
    /// Locked or otherwise unevictable, of a kind that was not looked at.
    pub unevictable: u64,
    /// Swapped out.
    pub swap: u64,
    /// Charged, but on no list: kernel memory. Kernels that hand kernel memory to
    /// the parent when a cgroup is removed leave the old charge standing here; it
    /// keeps nothing alive, so it is in no sum.
    pub kernel: u64,
}

impl Pages {
    /// Pages that can keep a dying cgroup alive.
    pub fn holding(&self) -> u64 {
        self.file + self.shmem + self.anon + self.unevictable + self.swap
    }
}

impl Add for Pages {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Pages {
    fn add_assign(&mut self, other: Self) {
        self.file += other.file;
        self.shmem += other.shmem;
        self.anon += other.anon;
        self.unevictable += other.unevictable;
        self.swap += other.swap;
        self.kernel += other.kernel;
    }
}

/// One memory cgroup.
#[derive(Debug, Clone)]
pub struct Cgroup {
    /// The one above; the root has none.
    pub parent: Option<CgroupIx>,
    /// What has become of it.
    pub state: State,
    /// Its directory is still there. A dying one with a directory lost only its
    /// memory controller.
    pub has_directory: bool,
    /// A process is in it or below it.
    pub populated: bool,
    /// Memory cgroups lie below it.
    pub has_children: bool,
    /// Seconds since it was made, where the kernel keeps that.
    pub age_seconds: Option<u64>,
    /// Pages of its own.
    pub pages: Pages,
    name: (u32, u16),
}

/// All memory cgroups of a node, each after its parent.
#[derive(Debug, Default)]
pub struct CgroupTree {
    nodes: Vec<Cgroup>,
    names: Vec<u8>,
}

impl CgroupTree {
    /// Adds a live cgroup; the rest of it is for the caller to fill in.
    pub fn push(&mut self, parent: Option<CgroupIx>, name: &[u8]) -> CgroupIx {
        let ix = CgroupIx(u32::try_from(self.nodes.len()).expect("fewer than 4 billion cgroups"));
        let start = u32::try_from(self.names.len()).expect("less than 4 GB of names");
        let len = u16::try_from(name.len()).expect("a file name is at most 255 bytes");
        self.names.extend_from_slice(name);
        self.nodes.push(Cgroup {
            parent,
            state: State::Live,
            has_directory: true,
            populated: false,
            has_children: false,
            age_seconds: None,
            pages: Pages::default(),
            name: (start, len),
        });
        ix
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The one at a place in the order of `iter`.
    pub fn at(&self, index: usize) -> CgroupIx {
        assert!(
            index < self.nodes.len(),
            "cgroup {index} of {}",
            self.nodes.len()
        );
        CgroupIx(index as u32)
    }

    /// One of them.
    pub fn get(&self, ix: CgroupIx) -> &Cgroup {
        &self.nodes[ix.0 as usize]
    }

    /// One of them, to be changed.
    pub fn get_mut(&mut self, ix: CgroupIx) -> &mut Cgroup {
        &mut self.nodes[ix.0 as usize]
    }

    /// The last component of its path.
    pub fn name(&self, ix: CgroupIx) -> &[u8] {
        let (start, len) = self.get(ix).name;
        &self.names[start as usize..start as usize + usize::from(len)]
    }

    /// Its path below the root of the hierarchy, `/` for the root itself.
    pub fn path(&self, ix: CgroupIx) -> Vec<u8> {
        let mut chain = Vec::new();
        let mut at = Some(ix);
        while let Some(ix) = at {
            at = self.get(ix).parent;
            chain.push(ix);
        }
        let mut path = Vec::new();
        for ix in chain.iter().rev().skip(1) {
            path.push(b'/');
            path.extend_from_slice(self.name(*ix));
        }
        if path.is_empty() {
            path.push(b'/');
        }
        path
    }

    /// All of them, each after its parent.
    pub fn iter(&self) -> impl Iterator<Item = (CgroupIx, &Cgroup)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(i, node)| (CgroupIx(i as u32), node))
    }

    /// How far below the root each one is, in the order of `iter`.
    pub(super) fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            depths.push(
                node.parent
                    .map_or(0, |parent| depths[parent.0 as usize] + 1),
            );
        }
        depths
    }
}

impl CgroupIx {
    /// Its place in the order of `CgroupTree::iter`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_built_from_the_names_above() {
        let mut tree = CgroupTree::default();
        let root = tree.push(None, b"/");
        let slice = tree.push(Some(root), b"system.slice");
        let unit = tree.push(Some(slice), b"a.service");
        assert_eq!(tree.path(root), b"/");
        assert_eq!(tree.path(unit), b"/system.slice/a.service");
        assert_eq!(tree.depths(), [0, 1, 2]);
    }
}
