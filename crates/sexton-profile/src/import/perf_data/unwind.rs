//! Unwinds user stacks that were copied (`perf record --call-graph dwarf`): registers, some
//! kilobytes of stack, and the `.eh_frame` of the files that were mapped give return addresses.
//!
//! Files and stacks are not trusted. A stack gives at most [`MAX_FRAMES`] addresses, tables of
//! files take at most [`MAX_TABLE_BYTES`], and processes at most [`MAX_UNWINDERS`] at a time.
//! Only recordings of x86-64 are unwound.

use std::sync::Arc;

use ahash::AHashMap;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};

use super::maps::Map;
use super::sample::UserStack;
use super::stacks::Sources;
use crate::symbols::{Place, UnwindTables};

/// As many as perf shows.
const MAX_FRAMES: usize = 127;

/// Tables of files are read until they take this much.
const MAX_TABLE_BYTES: usize = 512 << 20;

/// Memories of processes that are remembered; then it starts anew.
const MAX_UNWINDERS: usize = 64;

type Bytes = Arc<[u8]>;

/// What unwinding needs from one sample to the next.
#[derive(Default)]
pub(super) struct Unwinding {
    /// By the stamp of a process's memory.
    unwinders: AHashMap<u32, UnwinderX86_64<Bytes>>,
    /// By the number of a file.
    tables: AHashMap<u32, Option<Arc<UnwindTables>>>,
    table_bytes: usize,
    cache: Option<Box<CacheX86_64>>,
}

impl Unwinding {
    /// Adds the addresses of a stack, innermost first; whether it was unwound to its end.
    pub(super) fn unwind(
        &mut self,
        from: &mut Sources<'_>,
        (pid, stamp): (u32, u32),
        stack: &UserStack<'_>,
        addresses: &mut Vec<u64>,
    ) -> bool {
        if !self.unwinders.contains_key(&stamp) {
            if self.unwinders.len() >= MAX_UNWINDERS {
                self.unwinders.clear();
            }
            let unwinder = self.unwinder(from, pid);
            self.unwinders.insert(stamp, unwinder);
        }
        let Some(unwinder) = self.unwinders.get(&stamp) else {
            return false;
        };
        let cache = self.cache.get_or_insert_with(Box::default);
        let registers = UnwindRegsX86_64::new(stack.ip, stack.sp, stack.bp);
        let mut read = |address: u64| stack.word(address).ok_or(());
        let mut frames = unwinder.iter_frames(stack.ip, registers, cache, &mut read);
        let memory = from.machine.maps(pid);
        for n in 0..MAX_FRAMES {
            // Where the call is, not where it returns to: that may be another function.
            let address = match frames.next() {
                Ok(Some(frame)) => frame.address_for_lookup(),
                Ok(None) => return true,
                Err(_) => return false,
            };
            let map = memory.and_then(|maps| maps.find(address));
            if map.is_some() || n == 0 {
                addresses.push(address);
            }
            // Code made at run time has frame pointers. Other code without tables may have
            // none, and then what comes next would be a guess.
            let has_tables = |map: &Map| matches!(self.tables.get(&map.file), Some(Some(_)));
            if !map.is_some_and(|map| map.is_jit || has_tables(map)) {
                return false;
            }
        }
        true
    }

    /// An unwinder of what a process has mapped.
    fn unwinder(&mut self, from: &mut Sources<'_>, pid: u32) -> UnwinderX86_64<Bytes> {
        let mut unwinder = UnwinderX86_64::new();
        let machine = from.machine;
        for map in machine.maps(pid).into_iter().flat_map(|maps| maps.iter()) {
            let Some(tables) = self.tables(from, pid, map) else {
                continue;
            };
            if let Some(module) = module(map, &tables) {
                unwinder.add_module(module);
            }
        }
        unwinder
    }

    /// The tables of a file, read once.
    fn tables(&mut self, from: &mut Sources<'_>, pid: u32, map: &Map) -> Option<Arc<UnwindTables>> {
        if map.is_jit {
            return None;
        }
        if let Some(known) = self.tables.get(&map.file) {
            return known.clone();
        }
        let is_full = self.table_bytes >= MAX_TABLE_BYTES;
        let tables = (!is_full)
            .then(|| {
                from.symbols.unwind_tables(&Place {
                    pid,
                    module: from.tables.tables().name(map.module),
                    build_id: map.build_id.as_deref(),
                    is_id_of_mapping: map.is_id_of_mapping,
                    inode: map.inode,
                    address: map.offset,
                    is_kernel: false,
                    is_jit: false,
                })
            })
            .flatten();
        let tables = tables.map(Arc::new);
        self.table_bytes += tables.as_ref().map_or(0, |tables| tables.n_bytes());
        self.tables.insert(map.file, tables.clone());
        tables
    }
}

/// A mapping as the unwinder knows it.
fn module(map: &Map, tables: &UnwindTables) -> Option<Module<Bytes>> {
    let loaded_to = tables.address_of(map.offset)?;
    // By how much the file was moved; wraps where it was not.
    let base = map.start.wrapping_sub(loaded_to);
    if base > map.start {
        return None;
    }
    let range = |place: &(u64, u64)| place.0..place.0.saturating_add(place.1);
    let of = |section: &(u64, Bytes)| section.0..section.0.saturating_add(section.1.len() as u64);
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: tables.text.as_ref().map(range),
        got_svma: tables.got.as_ref().map(range),
        eh_frame_svma: Some(of(&tables.eh_frame)),
        eh_frame: Some(Arc::clone(&tables.eh_frame.1)),
        eh_frame_hdr_svma: tables.eh_frame_hdr.as_ref().map(of),
        eh_frame_hdr: tables.eh_frame_hdr.as_ref().map(|hdr| Arc::clone(&hdr.1)),
        ..ExplicitModuleSectionInfo::default()
    };
    Some(Module::new(String::new(), map.start..map.end, base, info))
}
