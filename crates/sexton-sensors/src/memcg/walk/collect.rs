//! Puts together what the batches of a walk told.

use sexton_bpf::prog::memcg::{Batch, File, Pin as PinSeen, Row, Tally};
use sexton_host::{Host, machine};
use sexton_model::census::{
    Census, CgroupIx, CgroupTree, Device, FileKind, Hierarchy, Pages, Pin, PinFile, State,
};
use sexton_model::gap::{Gap, Why};

use super::super::NAME;
use super::clock;
use super::names::{Names, Place};
use super::quick::QuickMap;

/// Magic numbers of filesystems, see include/uapi/linux/magic.h.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const BDEVFS_MAGIC: u64 = 0x6264_6576;

/// What identifies a file over its whole life.
type FileId = (u32, u64, u32);

/// Counters as the kernel keeps them: those of children are in them.
struct Counters {
    charged: i64,
    memsw: i64,
    charges_parent: bool,
    lru: [u64; 5],
    born_jiffies: u64,
    seen: Seen,
}

/// Pages of a dying cgroup that were looked at, by kind.
#[derive(Default, Clone, Copy)]
struct Seen {
    anon: u64,
    shmem: u64,
}

pub(super) struct Collector<'h> {
    host: &'h Host,
    tree: CgroupTree,
    by_serial: QuickMap<u64, CgroupIx>,
    counters: Vec<Counters>,
    names: Names,
    files: Vec<PinFile>,
    file_at: QuickMap<u64, u32>,
    file_by_id: QuickMap<FileId, u32>,
    /// In the order in which the walk told of them: those of one cgroup together.
    pins: Vec<Pin>,
    anonymous: Option<u32>,
    sampled: bool,
    torn: u64,
}

impl<'h> Collector<'h> {
    pub(super) fn new(host: &'h Host) -> Self {
        Self {
            host,
            tree: CgroupTree::default(),
            by_serial: QuickMap::default(),
            counters: Vec::new(),
            names: Names::default(),
            files: Vec::new(),
            file_at: QuickMap::default(),
            file_by_id: QuickMap::default(),
            pins: Vec::new(),
            anonymous: None,
            sampled: false,
            torn: 0,
        }
    }

    /// Takes in one batch.
    pub(super) fn take(&mut self, batch: &Batch<'_>) {
        for row in batch.rows {
            self.take_row(row);
        }
        self.names.learn(batch.names);
        for file in batch.files {
            self.take_file(file);
        }
        for pin in batch.pins {
            self.take_pin(pin);
        }
    }

    fn take_row(&mut self, row: &Row) {
        let parent = self
            .by_serial
            .get(&row.parent_serial)
            .copied()
            .filter(|_| row.parent_serial != row.serial);
        let ix = self.tree.push(parent, row.name());
        let cgroup = self.tree.get_mut(ix);
        if !row.is_online() {
            cgroup.state = State::Dying;
        }
        cgroup.has_directory = row.has_directory();
        cgroup.populated = row.is_populated();
        cgroup.has_children = row.has_children();
        self.by_serial.insert(row.serial, ix);
        self.counters.push(Counters {
            charged: row.charged_pages.cast_signed(),
            memsw: row.memsw_pages.cast_signed(),
            charges_parent: row.charges_parent(),
            lru: row.lru_pages,
            born_jiffies: row.born_jiffies,
            seen: Seen::default(),
        });
    }

    fn take_file(&mut self, file: &File) {
        let id = (file.device, file.inode, file.generation);
        let ix = match self.file_by_id.get(&id) {
            Some(ix) => *ix,
            None => {
                let described = self.describe(file);
                let ix = self.push_file(described);
                self.file_by_id.insert(id, ix);
                ix
            }
        };
        self.file_at.insert(file.file, ix);
    }

    fn push_file(&mut self, file: PinFile) -> u32 {
        self.files.push(file);
        u32::try_from(self.files.len() - 1).expect("fewer than 4 billion files")
    }

    fn describe(&mut self, file: &File) -> PinFile {
        let kind = match file.magic {
            TMPFS_MAGIC => FileKind::Shmem,
            BDEVFS_MAGIC => FileKind::BlockDevice,
            _ => FileKind::File,
        };
        let device = decode(if kind == FileKind::BlockDevice {
            file.rdev
        } else {
            file.device
        });
        let place = match kind {
            FileKind::BlockDevice => {
                machine::block_device_name(self.host, device).map(|name| Place {
                    path: name.into_bytes(),
                    mounted: true,
                })
            }
            _ => self.names.place(self.host.mounts(), device, file.name),
        };
        let nameless = || Place {
            path: format!("(inode {} on {device})", file.inode).into_bytes(),
            mounted: false,
        };
        let Place { path, mounted } = place.unwrap_or_else(nameless);
        PinFile {
            path,
            mounted,
            device,
            inode: file.inode,
            kind,
            // A block device has no link count of its own.
            deleted: file.n_links == 0 && kind != FileKind::BlockDevice,
            mapped: false,
            dirty: false,
            zombies: 0,
            pages: 0,
        }
    }

    /// Anonymous memory stands in the list of files as one line of its own.
    fn anonymous(&mut self) -> u32 {
        if let Some(ix) = self.anonymous {
            return ix;
        }
        let ix = self.push_file(PinFile {
            path: b"(anonymous memory)".to_vec(),
            mounted: false,
            device: Device { major: 0, minor: 0 },
            inode: 0,
            kind: FileKind::Anonymous,
            deleted: false,
            mapped: false,
            dirty: false,
            zombies: 0,
            pages: 0,
        });
        self.anonymous = Some(ix);
        ix
    }

    fn take_pin(&mut self, pin: &PinSeen) {
        let Some(cgroup) = self.by_serial.get(&pin.serial).copied() else {
            return;
        };
        if pin.starts_over() {
            self.pins.retain(|pin| pin.cgroup != cgroup);
            self.counters[cgroup.index()].seen = Seen::default();
        }
        self.torn += u64::from(pin.is_torn());
        self.sampled |= pin.is_sample();
        if pin.pages == 0 {
            return;
        }
        let file = match pin.file {
            _ if pin.is_anonymous() => self.anonymous(),
            // Cut from its file between our look at the list and at the page.
            0 => return,
            address => match self.file_at.get(&address) {
                Some(file) => *file,
                None => return,
            },
        };
        let told = &mut self.files[file as usize];
        told.mapped |= pin.is_mapped();
        told.dirty |= pin.is_dirty();
        let seen = &mut self.counters[cgroup.index()].seen;
        match told.kind {
            FileKind::Anonymous => seen.anon += pin.pages,
            FileKind::Shmem => seen.shmem += pin.pages,
            FileKind::File | FileKind::BlockDevice => {}
        }
        self.add_pin(cgroup, file, pin.pages);
    }

    fn add_pin(&mut self, cgroup: CgroupIx, file: u32, pages: u64) {
        let own = self
            .pins
            .iter_mut()
            .rev()
            .take_while(|pin| pin.cgroup == cgroup);
        match own.into_iter().find(|pin| pin.file == file) {
            Some(pin) => pin.pages += pages,
            None => self.pins.push(Pin {
                cgroup,
                file,
                pages,
            }),
        }
    }

    /// Adds everything up into the census.
    pub(super) fn finish(mut self, census: &mut Census, tally: &Tally) {
        self.fill_pages(census.hierarchy);
        self.fill_ages(tally);
        let mut pins = std::mem::take(&mut self.pins);
        for pin in &pins {
            let file = &mut self.files[pin.file as usize];
            file.zombies += 1;
            file.pages += pin.pages;
        }
        let order = order_by_zombies(&self.files);
        for pin in &mut pins {
            pin.file = order[pin.file as usize];
        }
        pins.sort_by_key(|pin| (pin.cgroup, std::cmp::Reverse(pin.pages), pin.file));
        if self.torn > 0 {
            let text = format!(
                "pages of {} dying cgroups moved while they were looked at",
                self.torn
            );
            census.gaps.push(Gap::new(NAME, Why::Lost(self.torn), text));
        }
        census.tree = self.tree;
        census.files = permuted(self.files, &order);
        // Told of, but its pins were taken back when the lists changed.
        census.files.retain(|file| file.zombies > 0);
        census.pins = pins;
        census.sampled = self.sampled;
    }

    /// Pages of each cgroup itself: counters less those of the children, and lists,
    /// which are its own alone.
    fn fill_pages(&mut self, hierarchy: Hierarchy) {
        let mut own: Vec<(i64, i64)> = self.counters.iter().map(|c| (c.charged, c.memsw)).collect();
        for (ix, cgroup) in self.tree.iter() {
            let counters = &self.counters[ix.index()];
            if let (Some(parent), true) = (cgroup.parent, counters.charges_parent) {
                own[parent.index()].0 -= counters.charged;
                own[parent.index()].1 -= counters.memsw;
            }
        }
        for (i, (charged, memsw)) in own.into_iter().enumerate() {
            let ix = self.tree.at(i);
            let lru = self.counters[i].lru;
            let swap = match hierarchy {
                Hierarchy::V1 => memsw - charged,
                Hierarchy::V2 => memsw,
            };
            let seen = self.counters[i].seen;
            self.tree.get_mut(ix).pages = pages(lru, charged, swap, seen);
        }
    }

    fn fill_ages(&mut self, tally: &Tally) {
        let Some(rate) = clock::ticks_per_second(tally.jiffies, tally.monotonic_ns) else {
            return;
        };
        for (i, counters) in self
            .counters
            .iter()
            .enumerate()
            .filter(|(_, c)| c.born_jiffies != 0)
        {
            let ix = self.tree.at(i);
            self.tree.get_mut(ix).age_seconds =
                clock::seconds_between(counters.born_jiffies, tally.jiffies, rate);
        }
    }
}

/// Sorts pages into kinds. The lists tell file from the rest exactly; shared from
/// anonymous memory is told by the pages that were looked at, in proportion when
/// that was a sample.
fn pages(lru: [u64; 5], charged: i64, swap: i64, seen: Seen) -> Pages {
    let [
        inactive_anon,
        active_anon,
        inactive_file,
        active_file,
        unevictable,
    ] = lru;
    let swap_backed = inactive_anon + active_anon;
    let looked_at = seen.anon + seen.shmem;
    let shmem = (swap_backed * seen.shmem)
        .checked_div(looked_at)
        .unwrap_or(0);
    let on_lists: u64 = lru.iter().sum();
    Pages {
        file: inactive_file + active_file,
        shmem,
        anon: swap_backed - shmem,
        unevictable,
        swap: u64::try_from(swap).unwrap_or(0),
        kernel: u64::try_from(charged).unwrap_or(0).saturating_sub(on_lists),
    }
}

/// The new place of each file when those that pin most come first.
fn order_by_zombies(files: &[PinFile]) -> Vec<u32> {
    let mut by: Vec<u32> = (0..files.len() as u32).collect();
    by.sort_by(|a, b| {
        let (a, b) = (&files[*a as usize], &files[*b as usize]);
        (b.zombies, b.pages, &a.path).cmp(&(a.zombies, a.pages, &b.path))
    });
    let mut place = vec![0; files.len()];
    for (new, old) in by.into_iter().enumerate() {
        place[old as usize] = new as u32;
    }
    place
}

fn permuted(files: Vec<PinFile>, place: &[u32]) -> Vec<PinFile> {
    let mut placed: Vec<(u32, PinFile)> = place.iter().copied().zip(files).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, file)| file).collect()
}

/// The kernel's own form of a device number: 12 bits of driver, 20 of device.
fn decode(device: u32) -> Device {
    Device {
        major: device >> 20,
        minor: device & 0xf_ffff,
    }
}
