//! The dying cgroups that a purge is about, and which of them a step would free.

use std::collections::{BTreeMap, HashMap};

use sexton_model::census::{Census, CgroupIx, FileKind, Pages, PinFile, State};

use super::aim::Aim;

/// The dying cgroups, with what holds each.
pub(crate) struct Stock<'a> {
    census: &'a Census,
    /// In the order of the tree: each after its parent.
    dying: Vec<CgroupIx>,
    /// The files that hold each of them.
    files: HashMap<CgroupIx, Vec<u32>>,
}

impl<'a> Stock<'a> {
    pub(crate) fn take(census: &'a Census, aim: &Aim) -> Self {
        let dying = aim.dying(census);
        let mut files: HashMap<CgroupIx, Vec<u32>> =
            dying.iter().map(|ix| (*ix, Vec::new())).collect();
        for pin in &census.pins {
            if let Some(files) = files.get_mut(&pin.cgroup) {
                files.push(pin.file);
            }
        }
        Self {
            census,
            dying,
            files,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.dying.len() as u64
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = CgroupIx> + '_ {
        self.dying.iter().copied()
    }

    /// The files that hold one of them.
    pub(crate) fn files_of(&self, ix: CgroupIx) -> impl Iterator<Item = &'a PinFile> + '_ {
        let files = self.files.get(&ix).into_iter().flatten();
        files.filter_map(|file| self.census.files.get(*file as usize))
    }

    pub(crate) fn pages(&self, ix: CgroupIx) -> Pages {
        self.census.tree.get(ix).pages
    }

    /// Every file that holds one of them, once, with how many of them.
    pub(crate) fn files(&self) -> Vec<(&'a PinFile, u64)> {
        let mut n: BTreeMap<u32, u64> = BTreeMap::new();
        for file in self.files.values().flatten() {
            *n.entry(*file).or_default() += 1;
        }
        n.into_iter()
            .filter_map(|(file, n)| Some((self.census.files.get(file as usize)?, n)))
            .collect()
    }

    /// How many are freed when those go of whose own pages `lets_go` says that they go.
    /// One that only dying ones below hold goes with them.
    pub(crate) fn freed(&self, lets_go: impl Fn(CgroupIx) -> bool) -> u64 {
        let mut held_below: HashMap<CgroupIx, bool> = HashMap::new();
        let mut n = 0;
        for ix in self.dying.iter().rev() {
            let is_held = held_below.get(ix).copied().unwrap_or(false);
            if !is_held && lets_go(*ix) {
                n += 1;
            } else if let Some(parent) = self.census.tree.get(*ix).parent {
                held_below.insert(parent, true);
            }
        }
        n
    }

    /// The nearest cgroup above that has a directory.
    pub(crate) fn live_parent(&self, ix: CgroupIx) -> Option<CgroupIx> {
        let tree = &self.census.tree;
        let mut at = tree.get(ix).parent;
        while let Some(above) = at {
            if tree.get(above).state != State::Dying {
                return Some(above);
            }
            at = tree.get(above).parent;
        }
        None
    }
}

/// Pages of a cgroup that only its files hold.
pub(crate) fn only_files(pages: Pages) -> bool {
    pages.shmem + pages.anon + pages.unevictable + pages.swap == 0
}

/// Whether a file's pages are page cache of a disk.
pub(crate) fn is_cache(file: &PinFile) -> bool {
    file.kind == FileKind::File
}

#[cfg(test)]
mod tests {
    use sexton_model::census::{Hierarchy, Method};

    use super::*;

    /// `/a` is live; below it `x` holds nothing but its child `x/y`, and `z` stands alone.
    fn census() -> Census {
        let mut census = Census::new(Method::BpfWalk, Hierarchy::V1, 4096);
        let root = census.tree.push(None, b"");
        let a = census.tree.push(Some(root), b"a");
        let x = census.tree.push(Some(a), b"x");
        let y = census.tree.push(Some(x), b"y");
        let z = census.tree.push(Some(a), b"z");
        for ix in [x, y, z] {
            census.tree.get_mut(ix).state = State::Dying;
        }
        for ix in [y, z] {
            census.tree.get_mut(ix).pages.file = 1;
        }
        census
    }

    #[test]
    fn a_parent_goes_with_the_last_of_its_children() {
        let census = census();
        let stock = Stock::take(&census, &Aim::at([b"/a".as_slice()]));
        assert_eq!(stock.len(), 3);
        assert_eq!(stock.freed(|_| true), 3);
        assert_eq!(stock.freed(|ix| census.tree.name(ix) != b"y"), 1);
        assert_eq!(stock.freed(|ix| census.tree.name(ix) != b"z"), 2);
    }

    #[test]
    fn the_live_parent_is_found_above_dying_ones() {
        let census = census();
        let stock = Stock::take(&census, &Aim::at([b"/a/x/y".as_slice()]));
        let y = stock.iter().next().expect("one");
        let parent = stock.live_parent(y).expect("a");
        assert_eq!(census.tree.path(parent), b"/a");
    }
}
