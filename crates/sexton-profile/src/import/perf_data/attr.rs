//! Which events were recorded, and what a record of each holds.

use ahash::AHashMap;

use super::features::FileHeader;
use super::fields::Fields;
use crate::import::ImportError;

/// More events than this are not in one recording: one for each counter and CPU is some
/// thousands.
const MAX_ATTRS: usize = 1 << 16;

/// Bits of `sample_type`.
pub(super) mod has {
    pub(in super::super) const IP: u64 = 1 << 0;
    pub(in super::super) const TID: u64 = 1 << 1;
    pub(in super::super) const TIME: u64 = 1 << 2;
    pub(in super::super) const ADDR: u64 = 1 << 3;
    pub(in super::super) const READ: u64 = 1 << 4;
    pub(in super::super) const CALLCHAIN: u64 = 1 << 5;
    pub(in super::super) const ID: u64 = 1 << 6;
    pub(in super::super) const CPU: u64 = 1 << 7;
    pub(in super::super) const PERIOD: u64 = 1 << 8;
    pub(in super::super) const STREAM_ID: u64 = 1 << 9;
    pub(in super::super) const RAW: u64 = 1 << 10;
    pub(in super::super) const BRANCH_STACK: u64 = 1 << 11;
    pub(in super::super) const REGS_USER: u64 = 1 << 12;
    pub(in super::super) const STACK_USER: u64 = 1 << 13;
    pub(in super::super) const WEIGHT: u64 = 1 << 14;
    pub(in super::super) const DATA_SRC: u64 = 1 << 15;
    pub(in super::super) const IDENTIFIER: u64 = 1 << 16;
    pub(in super::super) const TRANSACTION: u64 = 1 << 17;
    pub(in super::super) const REGS_INTR: u64 = 1 << 18;
    pub(in super::super) const PHYS_ADDR: u64 = 1 << 19;
    pub(in super::super) const AUX: u64 = 1 << 20;
    pub(in super::super) const CGROUP: u64 = 1 << 21;
    pub(in super::super) const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub(in super::super) const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub(in super::super) const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// One event.
#[derive(Debug, Clone, Default)]
pub(super) struct Attr {
    kind: u32,
    config: u64,
    period: u64,
    is_frequency: bool,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) branch_sample_type: u64,
    pub(super) regs_user: u64,
    pub(super) regs_intr: u64,
    pub(super) has_id_in_all: bool,
    /// Whether threads that are started are counted, too.
    pub(super) is_inherited: bool,
    pub(super) name: Option<String>,
}

impl Attr {
    /// `struct perf_event_attr`, as long as the recording has it.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |at: usize| bytes.get(at..).and_then(|rest| Fields(rest).u64());
        let mut start = Fields(bytes);
        let kind = start.u32()?;
        let flags = at(40)?;
        Some(Self {
            kind,
            config: at(8)?,
            period: at(16)?,
            is_frequency: flags >> 10 & 1 == 1,
            sample_type: at(24)?,
            read_format: at(32)?,
            is_inherited: flags >> 1 & 1 == 1,
            has_id_in_all: flags >> 18 & 1 == 1,
            // Older recordings end before these.
            branch_sample_type: at(72).unwrap_or(0),
            regs_user: at(80).unwrap_or(0),
            regs_intr: at(96).unwrap_or(0),
            name: None,
        })
    }

    /// What records that are no samples have at their end: who, when and where.
    pub(super) fn id_size(&self) -> usize {
        let parts = has::TID | has::TIME | has::ID | has::STREAM_ID | has::CPU | has::IDENTIFIER;
        if self.has_id_in_all {
            (self.sample_type & parts).count_ones() as usize * 8
        } else {
            0
        }
    }

    /// Whether it counts nothing: perf adds such an event to hear of processes and memory.
    pub(super) fn is_dummy(&self) -> bool {
        const SOFTWARE: u32 = 1;
        const DUMMY: u64 = 9;
        (self.kind, self.config) == (SOFTWARE, DUMMY)
    }

    /// What a sample stands for that does not say.
    pub(super) fn fixed_period(&self) -> u64 {
        if self.is_frequency {
            1
        } else {
            self.period.max(1)
        }
    }

    /// Its name: perf's where the recording has it, else what the kernel calls the event.
    pub(super) fn name(&self) -> String {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 11] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
            "bpf-output",
        ];
        let of = |names: &[&str]| {
            let at = usize::try_from(self.config & 0xffff_ffff).ok()?;
            names.get(at).map(|name| (*name).to_owned())
        };
        let by_kernel = match self.kind {
            0 => of(&HARDWARE),
            1 => of(&SOFTWARE),
            _ => None,
        };
        let by_number = || format!("event {}/{:#x}", self.kind, self.config);
        self.name.clone().or(by_kernel).unwrap_or_else(by_number)
    }
}

/// All events of a recording, and which ids are whose.
#[derive(Debug, Clone, Default)]
pub(super) struct Attrs {
    pub(super) list: Vec<Attr>,
    by_id: AHashMap<u64, usize>,
}

impl Attrs {
    /// Those of a file: `prefix` is all that lies before its records.
    pub(super) fn of_file(prefix: &[u8], header: &FileHeader) -> Result<Self, ImportError> {
        let table = header.attrs.within(prefix);
        let table = table.ok_or(ImportError::Header("its events lie outside of it"))?;
        let each = usize::try_from(header.attr_size).unwrap_or(usize::MAX);
        // The attribute, then where its ids are.
        if !(64 + 16..=4096).contains(&each) {
            return Err(ImportError::Header("its events have a size that cannot be"));
        }
        let mut attrs = Self::default();
        for entry in table.chunks_exact(each) {
            let (attr, ids) = entry.split_at(each - 16);
            let mut ids = Fields(ids);
            let section = ids.u64().zip(ids.u64());
            let ids = section.and_then(|(offset, size)| {
                super::features::Section { offset, size }.within(prefix)
            });
            let attr = Attr::parse(attr).ok_or(ImportError::Header("an event is cut short"))?;
            attrs.add(attr, ids.unwrap_or(&[]));
        }
        if attrs.list.is_empty() {
            return Err(ImportError::Header("it has no events"));
        }
        Ok(attrs)
    }

    /// Adds an event and its ids.
    pub(super) fn add(&mut self, attr: Attr, ids: &[u8]) {
        if self.list.len() >= MAX_ATTRS {
            return;
        }
        let at = self.list.len();
        self.list.push(attr);
        for id in ids.chunks_exact(8).filter_map(|id| Fields(id).u64()) {
            self.by_id.insert(id, at);
        }
    }

    /// Which event this id belongs to.
    pub(super) fn by_id(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Which event a record belongs to. What perf wrote itself has no id: the first event's
    /// layout holds.
    pub(super) fn of_record(&self, kind: u32, body: &[u8]) -> usize {
        self.known_of_record(kind, body).unwrap_or(0)
    }

    /// The same; `None` when its id is that of no event.
    pub(super) fn known_of_record(&self, kind: u32, body: &[u8]) -> Option<usize> {
        if self.list.len() <= 1 {
            return Some(0);
        }
        let (from_front, from_end) = self.id_places();
        let word = if kind == super::kind::SAMPLE {
            from_front
        } else {
            from_end.and_then(|n| (body.len() / 8).checked_sub(n))
        };
        let id = word.and_then(|word| Fields(body.get(word * 8..)?).u64());
        match id {
            None | Some(0) => Some(0),
            Some(id) => self.by_id(id),
        }
    }

    /// Names the event that this id belongs to.
    pub(super) fn rename(&mut self, id: u64, name: &[u8]) {
        let attr = self.by_id(id).and_then(|at| self.list.get_mut(at));
        if let Some(attr) = attr {
            attr.name = Some(sexton_model::text::escape(name));
        }
    }

    /// Names the event at this place in the list.
    pub(super) fn rename_at(&mut self, at: usize, name: &[u8]) {
        if let Some(attr) = self.list.get_mut(at) {
            attr.name = Some(sexton_model::text::escape(name));
        }
    }

    /// Where in a record the id is: from the front of a sample, from the end of another
    /// record, in words. All events of a recording agree on it, or they could not be told
    /// apart.
    pub(super) fn id_places(&self) -> (Option<usize>, Option<usize>) {
        let Some(kind) = self.list.first().map(|attr| attr.sample_type) else {
            return (None, None);
        };
        if kind & has::IDENTIFIER != 0 {
            return (Some(0), Some(1));
        }
        if kind & has::ID == 0 {
            return (None, None);
        }
        let count = |bits: u64| (kind & bits).count_ones() as usize;
        let before = count(has::IP | has::TID | has::TIME | has::ADDR);
        let after = count(has::STREAM_ID | has::CPU);
        (Some(before), Some(after + 1))
    }
}
