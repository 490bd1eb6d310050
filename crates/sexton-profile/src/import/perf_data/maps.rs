//! Which file is where in a process's memory.

use std::sync::Arc;

use sexton_model::stack::{Inode, NameId};

/// A process with more mapped files is broken or hostile: the kernel's own limit is 65,530.
const MAX_MAPS: usize = 65_530;

/// One mapping.
#[derive(Debug, Clone)]
pub(super) struct Map {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) module: NameId,
    pub(super) build_id: Option<Arc<[u8]>>,
    pub(super) is_id_of_mapping: bool,
    pub(super) inode: Option<Inode>,
    /// Tells one content of a path from another.
    pub(super) file: u32,
    /// Code made at run time: addresses are absolute.
    pub(super) is_jit: bool,
}

/// The memory of one process.
#[derive(Debug, Clone, Default)]
pub(super) struct Maps {
    /// Sorted; they do not overlap.
    list: Arc<Vec<Map>>,
    /// Changes whenever the list does; two processes with the same stamp have the same list.
    pub(super) stamp: u32,
}

impl Maps {
    /// Adds a mapping; it replaces what was there before.
    pub(super) fn insert(&mut self, map: Map, stamp: u32) {
        if map.start >= map.end {
            return;
        }
        let list = Arc::make_mut(&mut self.list);
        let first = list.partition_point(|old| old.end <= map.start);
        let last = list.partition_point(|old| old.start < map.end);
        let mut replacement = Vec::with_capacity(3);
        if let Some(before) = list.get(first).filter(|old| old.start < map.start) {
            replacement.push(Map {
                end: map.start,
                ..before.clone()
            });
        }
        let after = last.checked_sub(1).and_then(|at| list.get(at));
        let after = after
            .filter(|old| old.end > map.end && last > first)
            .map(|old| Map {
                start: map.end,
                offset: old.offset.wrapping_add(map.end - old.start),
                ..old.clone()
            });
        replacement.push(map);
        replacement.extend(after);
        if list.len() + replacement.len() <= MAX_MAPS {
            list.splice(first..last.max(first), replacement);
            self.stamp = stamp;
        }
    }

    /// All mappings, sorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Map> {
        self.list.iter()
    }

    /// The mapping that holds this address.
    pub(super) fn find(&self, address: u64) -> Option<&Map> {
        let at = self.list.partition_point(|map| map.end <= address);
        self.list.get(at).filter(|map| map.start <= address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(start: u64, end: u64, module: u32) -> Map {
        Map {
            start,
            end,
            offset: 0,
            module: NameId(module),
            build_id: None,
            is_id_of_mapping: false,
            inode: None,
            file: module,
            is_jit: false,
        }
    }

    proptest! {
        /// The list agrees with an array in which every address has its last mapping.
        #[test]
        fn the_last_mapping_of_an_address_holds(inserts in prop::collection::vec((0u64..60, 1u64..20), 1..40)) {
            let mut maps = Maps::default();
            let mut expected = [None; 100];
            for (n, (start, len)) in inserts.into_iter().enumerate() {
                let n = u32::try_from(n).expect("few");
                maps.insert(map(start, start + len, n), n);
                for (at, place) in expected.iter_mut().enumerate() {
                    if (start..start + len).contains(&(at as u64)) {
                        *place = Some((n, at as u64 - start));
                    }
                }
            }
            for (at, expected) in expected.into_iter().enumerate() {
                let found = maps.find(at as u64);
                let actual = found.map(|map| (map.module.0, at as u64 - map.start + map.offset));
                prop_assert_eq!(actual, expected);
            }
        }
    }
}
