//! What is known of threads, memory, cgroups and the kernel, as records tell it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use sexton_model::census::Device;
use sexton_model::stack::{Inode, NameId};
use sexton_model::text::escape;

use super::features::Features;
use super::fields::Fields;
use super::maps::{Map, Maps};
use crate::tables::TableBuilder;

/// More threads, processes or cgroups than this are not remembered: a pid has 22 bits.
const MAX_KNOWN: usize = 1 << 22;

/// The pid of the kernel's own mappings.
const KERNEL: u32 = u32::MAX;

/// Only code is wanted: `PROT_EXEC` of mappings that say.
const EXEC: u32 = 4;

/// What records told so far. It lives on from one file of a series to the next.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    comms: AHashMap<u32, NameId>,
    /// What threads are shown as whose names are not known. Their children have none either.
    unnamed: AHashMap<u32, NameId>,
    maps: AHashMap<u32, Maps>,
    kernel: Maps,
    cgroups: AHashMap<u64, NameId>,
    /// BPF programs and other code that the kernel made: start, end and name.
    made: BTreeMap<u64, (u64, String)>,
    build_ids: AHashMap<String, Arc<[u8]>>,
    /// Numbers of files: a path may have held several.
    files: AHashMap<(NameId, Identity), u32>,
    /// A symbol of the kernel and where it was when this was recorded.
    kernel_start: Option<(&'static str, u64)>,
    last_stamp: u32,
}

/// What a mapping says of its file's contents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Identity {
    build_id: Option<Arc<[u8]>>,
    is_id_of_mapping: bool,
    inode: Option<Inode>,
}

impl Machine {
    pub(super) fn learn_build_ids(&mut self, features: &Features) {
        for (file, id) in features.build_ids() {
            if self.build_ids.len() < MAX_KNOWN {
                self.build_ids.insert(escape(file), id.into());
            }
        }
    }

    /// A thread's name; `:TID` where it is not known, as perf shows it.
    pub(super) fn comm(&mut self, tables: &mut TableBuilder, tid: u32) -> NameId {
        let known = self.comms.get(&tid).or_else(|| self.unnamed.get(&tid));
        if let Some(&name) = known {
            return name;
        }
        let name = if tid == 0 {
            tables.name(crate::idle::THREAD)
        } else {
            // perf prints the number as a signed one.
            tables.name(&format!(":{}", tid.cast_signed()))
        };
        if self.unnamed.len() < MAX_KNOWN {
            self.unnamed.insert(tid, name);
        }
        name
    }

    fn set_comm(&mut self, tid: u32, name: NameId) {
        if self.comms.len() < MAX_KNOWN || self.comms.contains_key(&tid) {
            self.comms.insert(tid, name);
        }
    }

    /// A cgroup's path, or its number.
    pub(super) fn cgroup(&mut self, tables: &mut TableBuilder, id: u64) -> NameId {
        if let Some(&name) = self.cgroups.get(&id) {
            return name;
        }
        let name = tables.name(&id.to_string());
        if self.cgroups.len() < MAX_KNOWN {
            self.cgroups.insert(id, name);
        }
        name
    }

    /// The memory of a process.
    pub(super) fn maps(&self, pid: u32) -> Option<&Maps> {
        self.maps.get(&pid)
    }

    /// The kernel's mapping that holds this address: itself, or a module.
    pub(super) fn kernel_map(&self, address: u64) -> Option<&Map> {
        self.kernel.find(address)
    }

    /// A symbol of the kernel and where it was when this was recorded.
    pub(super) fn kernel_start(&self) -> Option<(&'static str, u64)> {
        self.kernel_start
    }

    /// The name of code that the kernel made at run time.
    pub(super) fn made_code(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.made.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }

    pub(super) fn on_comm(
        &mut self,
        tables: &mut TableBuilder,
        mut record: Fields<'_>,
    ) -> Option<()> {
        record.u32()?;
        let tid = record.u32()?;
        let name = tables.name(&escape(record.text()));
        self.set_comm(tid, name);
        Some(())
    }

    /// A child has its parent's name, and its memory unless it is only a thread.
    pub(super) fn on_fork(&mut self, mut record: Fields<'_>) -> Option<()> {
        let (pid, parent) = (record.u32()?, record.u32()?);
        let (tid, parent_tid) = (record.u32()?, record.u32()?);
        // The number may have been another's before, whose name and memory are not the child's.
        match self.comms.get(&parent_tid).copied() {
            Some(name) => self.set_comm(tid, name),
            None => {
                self.comms.remove(&tid);
            }
        }
        if pid != parent {
            match self.maps.get(&parent).cloned() {
                Some(maps) if self.maps.len() < MAX_KNOWN => self.maps.insert(pid, maps),
                _ => self.maps.remove(&pid),
            };
        }
        Some(())
    }

    pub(super) fn on_cgroup(
        &mut self,
        tables: &mut TableBuilder,
        mut record: Fields<'_>,
    ) -> Option<()> {
        let id = record.u64()?;
        let name = tables.name(&escape(record.text()));
        if self.cgroups.len() < MAX_KNOWN {
            self.cgroups.insert(id, name);
        }
        Some(())
    }

    pub(super) fn on_ksymbol(&mut self, mut record: Fields<'_>) -> Option<()> {
        const UNREGISTERED: u16 = 1;
        let (start, len) = (record.u64()?, record.u32()?);
        record.u16()?;
        let flags = record.u16()?;
        let name = escape(record.text());
        // Code that is gone keeps its name: samples of it may still come.
        if flags & UNREGISTERED == 0 && self.made.len() < MAX_KNOWN {
            let end = start.saturating_add(u64::from(len));
            self.made.insert(start, (end, name));
        }
        Some(())
    }

    /// `PERF_RECORD_MMAP` has no more than place and name.
    pub(super) fn on_mmap(
        &mut self,
        tables: &mut TableBuilder,
        misc: u16,
        mut record: Fields<'_>,
    ) -> Option<()> {
        let (pid, _) = (record.u32()?, record.u32()?);
        let place = (record.u64()?, record.u64()?, record.u64()?);
        self.add_map(tables, misc, pid, place, Identity::default(), record.text());
        Some(())
    }

    pub(super) fn on_mmap2(
        &mut self,
        tables: &mut TableBuilder,
        misc: u16,
        mut record: Fields<'_>,
    ) -> Option<()> {
        const HAS_BUILD_ID: u16 = 1 << 14;
        let (pid, _) = (record.u32()?, record.u32()?);
        let place = (record.u64()?, record.u64()?, record.u64()?);
        let identity = record.bytes(24)?;
        let protection = record.u32()?;
        record.u32()?;
        let identity = if misc & HAS_BUILD_ID != 0 {
            let len = usize::from(identity[0]).min(20);
            Identity {
                build_id: Some(identity[4..4 + len].into()),
                is_id_of_mapping: true,
                inode: None,
            }
        } else {
            Identity {
                inode: inode(Fields(identity)),
                ..Identity::default()
            }
        };
        if protection & EXEC != 0 || misc & CPU_MODE == KERNEL_MODE {
            self.add_map(tables, misc, pid, place, identity, record.text());
        }
        Some(())
    }

    fn file(&mut self, module: NameId, identity: Identity) -> u32 {
        let next = self.files.len() as u32;
        if self.files.len() >= MAX_KNOWN {
            return next;
        }
        *self.files.entry((module, identity)).or_insert(next)
    }

    fn add_map(
        &mut self,
        tables: &mut TableBuilder,
        misc: u16,
        pid: u32,
        (start, len, offset): (u64, u64, u64),
        mut identity: Identity,
        file: &[u8],
    ) {
        let file = escape(file);
        let is_kernel = pid == KERNEL || misc & CPU_MODE == KERNEL_MODE;
        let is_jit = !is_kernel && is_anonymous(&file);
        let name = if is_kernel {
            kernel_module(&file)
        } else if is_jit && !file.starts_with(MEMFD) {
            format!("/tmp/perf-{pid}.map")
        } else {
            file.clone()
        };
        for symbol in ["_text", "_stext"] {
            // The offset of the kernel's own mapping is where this symbol was.
            if is_kernel && file.ends_with(symbol) && name.len() + symbol.len() == file.len() {
                self.kernel_start = Some((symbol, offset));
            }
        }
        let build_id_name = if is_kernel { &name } else { &file };
        let known = || self.build_ids.get(build_id_name).cloned();
        identity.build_id = identity.build_id.or_else(known);
        let module = tables.name(&name);
        let map = Map {
            start,
            end: start.saturating_add(len),
            offset,
            module,
            build_id: identity.build_id.clone(),
            is_id_of_mapping: identity.is_id_of_mapping,
            inode: identity.inode,
            file: self.file(module, identity),
            is_jit,
        };
        self.last_stamp = self.last_stamp.wrapping_add(1);
        let stamp = self.last_stamp;
        if is_kernel {
            self.kernel.insert(map, stamp);
        } else if self.maps.len() < MAX_KNOWN || self.maps.contains_key(&pid) {
            self.maps.entry(pid).or_default().insert(map, stamp);
        }
    }
}

/// The file of a mapping; a mapping of none has no number.
fn inode(mut fields: Fields<'_>) -> Option<Inode> {
    let (major, minor) = (fields.u32()?, fields.u32()?);
    let (number, generation) = (fields.u64()?, fields.u64()?);
    let generation = u32::try_from(generation).ok();
    (number != 0).then_some(Inode {
        number,
        device: Device { major, minor },
        // What perf itself tells of processes that ran before has none.
        generation: generation.filter(|generation| *generation != 0),
    })
}

/// The bits of a record's flags that say whose code ran.
pub(super) const CPU_MODE: u16 = 7;
pub(super) const KERNEL_MODE: u16 = 1;
pub(super) const USER_MODE: u16 = 2;

/// Memory that has a name: of a run-time compiler, or of a program that was copied there.
const MEMFD: &str = "/memfd:";

/// Memory that no file backs: where run-time compilers put code.
fn is_anonymous(file: &str) -> bool {
    file == "//anon"
        || file.starts_with("/dev/zero")
        || file.starts_with("/anon_hugepage")
        || file.starts_with(MEMFD)
        || file.starts_with("[anon:")
}

/// The kernel's text is `[kernel.kallsyms]_text` in a recording, and a module is its file;
/// perf shows `[kernel.kallsyms]` and `[module]`.
fn kernel_module(file: &str) -> String {
    if let Some(end) = file.strip_prefix('[').and_then(|rest| rest.find(']')) {
        return file[..end + 2].to_owned();
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    match name.split_once(".ko") {
        Some((module, _)) => format!("[{}]", module.replace('-', "_")),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells of a thread's name, as a record does.
    fn named(machine: &mut Machine, tables: &mut TableBuilder, tid: u32, name: &[u8]) {
        let record = [&tid.to_le_bytes(), &tid.to_le_bytes(), name].concat();
        machine.on_comm(tables, Fields(&record)).expect("a record");
    }

    fn forked(machine: &mut Machine, tid: u32, parent: u32) {
        let ids = [tid, parent, tid, parent];
        let record: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        machine.on_fork(Fields(&record)).expect("a record");
    }

    #[test]
    fn a_child_has_its_parents_name_if_that_is_known() {
        let (mut machine, mut tables) = (Machine::default(), TableBuilder::default());
        named(&mut machine, &mut tables, 1, b"known\0");
        let mut name = |machine: &mut Machine, tid| {
            let name = machine.comm(&mut tables, tid);
            tables.tables().name(name).to_owned()
        };
        assert_eq!(name(&mut machine, 2), ":2");
        forked(&mut machine, 3, 2);
        forked(&mut machine, 4, 1);
        assert_eq!(name(&mut machine, 3), ":3");
        assert_eq!(name(&mut machine, 4), "known");
        // The number is used again.
        forked(&mut machine, 4, 2);
        assert_eq!(name(&mut machine, 4), ":4");
    }
}
