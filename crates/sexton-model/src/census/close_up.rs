//! A closer look at some of the groups: how old their dying ones are, and which files
//! pin them.

use std::collections::HashMap;

use super::Census;
use super::files::{FileKind, pattern_of};
use super::tree::{CgroupIx, State};

/// Files alike are looked for among so many of a group; a sample tells as much.
const FILES_COMPARED: usize = 2_000;

/// Files alike that pin dying ones of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPin {
    /// One path, or the pattern of several in one directory.
    pub path: Vec<u8>,
    /// What sort of thing it is.
    pub kind: FileKind,
    /// No directory holds it any more.
    pub deleted: bool,
    /// Dying ones of the group that hold a page of it.
    pub zombies: u64,
}

/// What more there is to tell of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloseUp {
    /// Ages of its dying ones in seconds: the youngest, nine deciles, the oldest. Empty
    /// where the kernel does not keep them.
    pub ages: Vec<u64>,
    /// What pins them, most first.
    pub pins: Vec<OriginPin>,
    /// The nearest live cgroup above one of its dying ones.
    pub above: Option<CgroupIx>,
}

impl Census {
    /// A closer look at the first `n` groups, each in its place.
    pub fn close_ups(&self, n: usize) -> Vec<CloseUp> {
        let n = n.min(self.origins.len());
        let mut looks = vec![CloseUp::default(); n];
        for (ix, cgroup) in self.tree.iter() {
            let Some(look) = self.place(ix).and_then(|place| looks.get_mut(place)) else {
                continue;
            };
            if cgroup.state == State::Dying {
                look.ages.extend(cgroup.age_seconds);
                look.above = look.above.or_else(|| self.live_above(ix));
            }
        }
        for (look, pins) in looks.iter_mut().zip(self.pins_of(n)) {
            look.ages = deciles(std::mem::take(&mut look.ages));
            look.pins = pins;
        }
        looks
    }

    /// Dying ones below a cgroup.
    pub fn dying_below(&self, top: CgroupIx) -> u64 {
        let mut is_below = vec![false; self.tree.len()];
        let mut n = 0;
        for (ix, cgroup) in self.tree.iter() {
            let parent = cgroup.parent;
            is_below[ix.index()] =
                parent.is_some_and(|parent| parent == top || is_below[parent.index()]);
            n += u64::from(is_below[ix.index()] && cgroup.state == State::Dying);
        }
        n
    }

    fn place(&self, ix: CgroupIx) -> Option<usize> {
        self.origin_of.get(ix.index()).map(|place| *place as usize)
    }

    fn live_above(&self, ix: CgroupIx) -> Option<CgroupIx> {
        let mut at = self.tree.get(ix).parent;
        while let Some(above) = at {
            let cgroup = self.tree.get(above);
            if cgroup.state != State::Dying {
                return Some(above);
            }
            at = cgroup.parent;
        }
        None
    }

    /// What pins the dying ones of each of the first `n` groups, most first.
    fn pins_of(&self, n: usize) -> Vec<Vec<OriginPin>> {
        let mut counts: Vec<HashMap<u32, u64>> = vec![HashMap::new(); n];
        for pin in &self.pins {
            let counted = self
                .place(pin.cgroup)
                .and_then(|place| counts.get_mut(place));
            if let Some(counted) = counted {
                *counted.entry(pin.file).or_default() += 1;
            }
        }
        counts.into_iter().map(|count| self.alike(count)).collect()
    }

    fn alike(&self, count: HashMap<u32, u64>) -> Vec<OriginPin> {
        let mut files: Vec<(u32, u64)> = count.into_iter().collect();
        files.sort_unstable_by_key(|(file, n)| (std::cmp::Reverse(*n), *file));
        let n_left_out = files.len().saturating_sub(FILES_COMPARED);
        files.truncate(FILES_COMPARED);
        let mut pins: Vec<(OriginPin, u64)> = Vec::new();
        let mut at: HashMap<(Vec<u8>, FileKind, bool), usize> = HashMap::new();
        for (file, zombies) in files {
            let Some(file) = self.files.get(file as usize) else {
                continue;
            };
            let key = (pattern_of(&file.path), file.kind, file.deleted);
            let place = *at.entry(key).or_insert_with(|| {
                let pin = OriginPin {
                    path: file.path.clone(),
                    kind: file.kind,
                    deleted: file.deleted,
                    zombies: 0,
                };
                pins.push((pin, 0));
                pins.len() - 1
            });
            let (pin, n_files) = &mut pins[place];
            pin.zombies += zombies;
            *n_files += 1;
            if *n_files == 2 {
                pin.path = pattern_of(&pin.path);
            }
        }
        // The many that were not compared pin one each; they are like the most of these.
        if let Some((pin, _)) = pins.iter_mut().max_by_key(|(_, n_files)| *n_files) {
            pin.zombies += n_left_out as u64;
        }
        let mut pins: Vec<OriginPin> = pins.into_iter().map(|(pin, _)| pin).collect();
        pins.sort_by(|a, b| (b.zombies, &a.path).cmp(&(a.zombies, &b.path)));
        pins
    }
}

/// The least, nine deciles, the greatest.
fn deciles(mut ages: Vec<u64>) -> Vec<u64> {
    ages.sort_unstable();
    let Some(last) = ages.len().checked_sub(1) else {
        return ages;
    };
    (0..=10).map(|tenth| ages[last * tenth / 10]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::{Device, Hierarchy, Method, Pin, PinFile};

    fn file(path: &str, zombies: u64) -> PinFile {
        PinFile {
            path: path.into(),
            mounted: true,
            device: Device { major: 8, minor: 1 },
            inode: 7,
            kind: FileKind::File,
            deleted: false,
            mapped: false,
            dirty: false,
            zombies,
            pages: zombies,
        }
    }

    #[test]
    fn ages_pins_and_what_is_above() {
        let mut census = Census::new(Method::BpfWalk, Hierarchy::V1, 4096);
        let root = census.tree.push(None, b"/");
        let parent = census.tree.push(Some(root), b"jobs");
        census.tree.get_mut(root).has_children = true;
        census.tree.get_mut(parent).has_children = true;
        for i in 0..11_u64 {
            let ix = census.tree.push(Some(parent), format!("z-{i}").as_bytes());
            let cgroup = census.tree.get_mut(ix);
            cgroup.state = State::Dying;
            cgroup.age_seconds = Some(100 * i);
            let file = if i < 8 { 0 } else { i as u32 - 7 };
            let pages = 1;
            census.pins.push(Pin {
                cgroup: ix,
                file,
                pages,
            });
        }
        census.files = vec![file("/var/log/a.log", 8)];
        census
            .files
            .extend((1..=3).map(|i| file(&format!("/srv/out-{i}"), 1)));
        census.summarize(&HashMap::new());
        assert_eq!(census.origins[0].pattern, b"/jobs/z-<n>");
        let looks = census.close_ups(1);
        let expected: Vec<u64> = (0..=10).map(|i| 100 * i).collect();
        assert_eq!(looks[0].ages, expected);
        assert_eq!(looks[0].above, Some(parent));
        assert_eq!(census.dying_below(parent), 11);
        assert_eq!(census.dying_below(root), 11);
        let pins: Vec<(&[u8], u64)> = looks[0]
            .pins
            .iter()
            .map(|pin| (pin.path.as_slice(), pin.zombies))
            .collect();
        assert_eq!(pins, [(&b"/var/log/a.log"[..], 8), (b"/srv/out-<n>", 3)]);
    }
}
