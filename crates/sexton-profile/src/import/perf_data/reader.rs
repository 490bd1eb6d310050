//! Goes through the records.

use std::io::Read;

use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, NameId, StackId, StackSample};

use super::attr::{Attr, Attrs, has};
use super::compressed::Unpacker;
use super::features::{Features, header};
use super::fields::Fields;
use super::kind;
use super::machine::{CPU_MODE, KERNEL_MODE, USER_MODE};
use super::order::{Due, Queue};
use super::sample::Sample;
use super::stacks::{Sources, Stacks};
use crate::import::bytes::Window;
use crate::import::{Importer, Position, Report};

/// The size of a record's header.
const HEADER: usize = 8;

/// One recording as it is read.
pub(super) struct Reader<'a, 'b> {
    importer: &'a mut Importer<'b>,
    attrs: Attrs,
    event_names: Vec<Option<NameId>>,
    features: Features,
    stacks: Stacks,
    queue: Queue,
    unpacker: Option<Unpacker>,
    report: Report,
    /// Where the records end; `None` when only the stream's end says.
    end: Option<u64>,
    latest: u64,
}

/// Why a record could not be used and reading cannot go on.
struct Broken(String);

impl<'a, 'b> Reader<'a, 'b> {
    pub(super) fn new(
        importer: &'a mut Importer<'b>,
        attrs: Attrs,
        report: Report,
        end: Option<u64>,
    ) -> Self {
        Self {
            importer,
            attrs,
            event_names: Vec::new(),
            features: Features::default(),
            stacks: Stacks::default(),
            queue: Queue::default(),
            unpacker: None,
            report,
            end,
            latest: 0,
        }
    }

    /// Reads all records.
    pub(super) fn run<R: Read>(mut self, mut window: Window<R>, features: Features) -> Report {
        features.name_events(&mut self.attrs);
        self.importer.machine.learn_build_ids(&features);
        self.features = features;
        loop {
            let at = window.position();
            match self.next_record(&mut window) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Broken(why)) => {
                    self.report.stop(Position::Byte(at), why);
                    break;
                }
            }
        }
        let due = self.queue.rest();
        self.deliver(due);
        let n_left = self
            .unpacker
            .as_ref()
            .map_or(0, |packed| packed.bytes().len());
        if n_left > 0 {
            let at = Position::Byte(window.position());
            self.report
                .stop(at, "the last packed record is not complete");
        }
        self.report
    }

    /// Reads one record; `false` at the end.
    fn next_record<R: Read>(&mut self, window: &mut Window<R>) -> Result<bool, Broken> {
        let position = window.position();
        if self.end.is_some_and(|end| position >= end) {
            return Ok(false);
        }
        let unused = window.up_to(HEADER).map_err(broken)?;
        if unused.is_empty() {
            return match self.end {
                Some(end) => Err(Broken(format!(
                    "the file ends here, {} bytes before its records do",
                    end - position
                ))),
                None => Ok(false),
            };
        }
        let (kind, misc, size) = header(&mut Fields(unused))
            .ok_or_else(|| Broken("the file ends inside a record's header".into()))?;
        if size < HEADER {
            return Err(Broken(format!("a record of {size} bytes cannot be")));
        }
        let unused = window.up_to(size).map_err(broken)?;
        if unused.len() < size {
            return Err(Broken(format!(
                "the file ends inside a record: {} of {size} bytes are there",
                unused.len()
            )));
        }
        let record = &unused[..size];
        self.top_level(kind, misc, record)?;
        let n_behind = bytes_behind(kind, &record[HEADER..]);
        window.consume(size);
        if window.skip(n_behind).map_err(broken)? {
            Ok(true)
        } else {
            Err(Broken("the file ends inside trace data".into()))
        }
    }

    /// A record of the file itself.
    fn top_level(&mut self, kind: u32, misc: u16, record: &[u8]) -> Result<(), Broken> {
        let body = Fields(&record[HEADER..]);
        match kind {
            kind::COMPRESSED => self.unpack(body.0),
            kind::COMPRESSED2 => {
                let mut body = body;
                let size = body.u64().and_then(|size| usize::try_from(size).ok());
                let packed = size.and_then(|size| body.bytes(size));
                self.unpack(packed.ok_or_else(|| Broken("a packed record is cut short".into()))?)
            }
            _ => {
                self.record(kind, misc, record);
                Ok(())
            }
        }
    }

    fn unpack(&mut self, mut packed: &[u8]) -> Result<(), Broken> {
        let mut unpacker = match self.unpacker.take() {
            Some(unpacker) => unpacker,
            None => Unpacker::new().map_err(broken)?,
        };
        loop {
            let (rest, has_more) = unpacker
                .step(packed)
                .map_err(|error| Broken(format!("a packed record cannot be unpacked: {error}")))?;
            let is_stuck = rest.len() == packed.len() && !has_more;
            packed = rest;
            let mut used = 0;
            while let Some(record) = whole_record(&unpacker.bytes()[used..]) {
                let Some((kind, misc, size)) =
                    header(&mut Fields(record)).filter(|h| h.2 >= HEADER)
                else {
                    return Err(Broken("a record inside packed ones is damaged".into()));
                };
                self.record(kind, misc, record);
                used += size;
            }
            unpacker.consume(used);
            if (packed.is_empty() && !has_more) || is_stuck {
                break;
            }
        }
        self.unpacker = Some(unpacker);
        Ok(())
    }

    /// Any record that is not packed: at once, or when its time comes.
    fn record(&mut self, kind: u32, misc: u16, record: &[u8]) {
        if kind >= kind::FIRST_OF_PERF {
            self.record_of_perf(kind, &record[HEADER..]);
            return;
        }
        match self.time_of(kind, &record[HEADER..]) {
            Some(time) if time != 0 && time != u64::MAX => {
                if self.queue.push(time, record) {
                    let due = self.queue.cut();
                    self.deliver(due);
                }
            }
            _ => self.apply(kind, misc, &record[HEADER..]),
        }
    }

    fn record_of_perf(&mut self, kind: u32, body: &[u8]) {
        match kind {
            kind::FINISHED_ROUND => {
                let due = self.queue.round();
                self.deliver(due);
            }
            kind::HEADER_ATTR => {
                let size = body.get(4..).and_then(|rest| Fields(rest).u32());
                let split = size.and_then(|size| body.split_at_checked(size as usize));
                if let Some((attr, ids)) = split
                    && let Some(attr) = Attr::parse(attr)
                {
                    self.attrs.add(attr, ids);
                }
            }
            kind::HEADER_FEATURE => {
                self.features.take(Fields(body));
                self.features.name_events(&mut self.attrs);
                self.importer.machine.learn_build_ids(&self.features);
                self.event_names.clear();
            }
            kind::EVENT_UPDATE => {
                const NAME: u64 = 2;
                let mut fields = Fields(body);
                if let (Some(NAME), Some(id)) = (fields.u64(), fields.u64()) {
                    self.attrs.rename(id, fields.text());
                    self.event_names.clear();
                }
            }
            _ => {}
        }
    }

    /// When a record was written.
    fn time_of(&self, kind: u32, body: &[u8]) -> Option<u64> {
        let attr = self.attrs.list.get(self.attr_of(kind, body)?)?;
        let shape = attr.sample_type;
        if shape & has::TIME == 0 {
            return None;
        }
        let n_words = body.len() / 8;
        let word = if kind == kind::SAMPLE {
            (shape & (has::IDENTIFIER | has::IP | has::TID)).count_ones() as usize
        } else if attr.has_id_in_all {
            let after = has::ID | has::STREAM_ID | has::CPU | has::IDENTIFIER;
            n_words.checked_sub(1 + (shape & after).count_ones() as usize)?
        } else {
            return None;
        };
        Fields(body.get(word * 8..)?).u64()
    }

    /// Which event a record belongs to.
    fn attr_of(&self, kind: u32, body: &[u8]) -> Option<usize> {
        if self.attrs.list.len() <= 1 {
            return Some(0);
        }
        let (from_front, from_end) = self.attrs.id_places();
        let word = if kind == kind::SAMPLE {
            from_front
        } else {
            from_end.and_then(|n| (body.len() / 8).checked_sub(n))
        };
        let id = word.and_then(|word| Fields(body.get(word * 8..)?).u64());
        // What perf wrote itself has no id: the first event's layout holds.
        Some(id.and_then(|id| self.attrs.by_id(id)).unwrap_or(0))
    }

    fn deliver(&mut self, due: Due) {
        for (time, record) in due.iter() {
            self.report.n_unordered += u64::from(time < self.latest);
            self.latest = self.latest.max(time);
            if let Some((kind, misc, _)) = header(&mut Fields(record)) {
                self.apply(kind, misc, &record[HEADER..]);
            }
        }
        self.queue.take_back(due);
    }

    /// Takes in what a record says.
    fn apply(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let fields = Fields(body);
        let (machine, tables) = (&mut self.importer.machine, &mut self.importer.tables);
        let understood = match kind {
            kind::SAMPLE => self.sample(misc, body),
            kind::COMM => machine.on_comm(tables, fields),
            kind::FORK => machine.on_fork(fields),
            kind::MMAP => machine.on_mmap(tables, misc, fields),
            kind::MMAP2 => machine.on_mmap2(tables, misc, fields),
            kind::CGROUP => machine.on_cgroup(tables, fields),
            kind::KSYMBOL => machine.on_ksymbol(fields),
            kind::LOST => self.lost(fields, true),
            kind::LOST_SAMPLES => self.lost(fields, false),
            // A process that is gone may still be sampled by what was late.
            kind::EXIT => Some(()),
            _ => Some(()),
        };
        self.report.n_skipped += u64::from(understood.is_none());
    }

    fn lost(&mut self, mut fields: Fields<'_>, has_id: bool) -> Option<()> {
        if has_id {
            fields.u64()?;
        }
        self.report.n_lost = self.report.n_lost.saturating_add(fields.u64()?);
        Some(())
    }

    fn sample(&mut self, misc: u16, body: &[u8]) -> Option<()> {
        let at = self.attr_of(kind::SAMPLE, body)?;
        let event = self.event_name(at)?;
        let attr = self.attrs.list.get(at)?;
        let raw = Sample::parse(attr, body)?;
        if attr.sample_type & has::TIME == 0 {
            self.report.has_times = false;
        }
        let importer = &mut *self.importer;
        let comm = importer.machine.comm(&mut importer.tables, raw.tid);
        let cgroup = raw
            .cgroup
            .map(|id| importer.machine.cgroup(&mut importer.tables, id));
        let mode = misc & CPU_MODE;
        let mut sources = Sources {
            machine: &importer.machine,
            tables: &mut importer.tables,
            symbols: importer.symbols,
            keeps_addresses: importer.sink.wants_addresses(),
        };
        // Only the idle thread's stack says something about the sample itself.
        let stack = if raw.tid == 0 || importer.sink.wants_stacks() {
            self.stacks.stack(&mut sources, &raw, mode)
        } else {
            StackId::EMPTY
        };
        let is_idle = raw.tid == 0 && importer.tables.has_idle_frame(stack);
        let sample = StackSample {
            at: Moment::from_ns(raw.time),
            cpu: raw.cpu.unwrap_or(crate::NO_CPU),
            pid: raw.pid,
            tid: raw.tid,
            comm,
            cgroup,
            state: match mode {
                _ if is_idle => CoreState::Idle,
                KERNEL_MODE => CoreState::Kernel,
                USER_MODE => CoreState::User,
                _ => CoreState::Unknown,
            },
            event,
            weight: raw.period.unwrap_or_else(|| attr.fixed_period()),
            stack,
        };
        self.report.n_not_unwound += u64::from(raw.has_user_stack);
        self.report.n_samples += 1;
        importer.sink.sample(&sample, importer.tables.tables());
        Some(())
    }

    fn event_name(&mut self, at: usize) -> Option<NameId> {
        if self.event_names.len() <= at {
            self.event_names.resize(self.attrs.list.len(), None);
        }
        if let Some(name) = self.event_names.get(at)? {
            return Some(*name);
        }
        let name = self.attrs.list.get(at)?.name();
        let name = self.importer.tables.name(&name);
        *self.event_names.get_mut(at)? = Some(name);
        Some(name)
    }
}

/// Two kinds of records have more behind them than their size says.
fn bytes_behind(kind: u32, body: &[u8]) -> u64 {
    let size = match kind {
        kind::AUXTRACE => Fields(body).u64(),
        kind::HEADER_TRACING_DATA => {
            let size = Fields(body).u32();
            size.map(|size| u64::from(size).next_multiple_of(8))
        }
        _ => None,
    };
    size.unwrap_or(0)
}

/// The first record of `bytes`, if all of it is there. One whose size cannot be is returned
/// as its header.
fn whole_record(bytes: &[u8]) -> Option<&[u8]> {
    let (_, _, size) = header(&mut Fields(bytes))?;
    bytes.get(..size.max(HEADER))
}

fn broken(error: std::io::Error) -> Broken {
    Broken(format!("cannot read on: {error}"))
}
