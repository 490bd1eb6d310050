//! Takes in what records say, in the order of their times.

use std::cell::RefCell;
use std::io::Read;

use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, NameId, StackId, StackSample};

use super::attr::{Attrs, has};
use super::features::{Features, header};
use super::feed::Feed;
use super::fields::Fields;
use super::group::{Counters, Group};
use super::kind;
use super::machine::{CPU_MODE, KERNEL_MODE, USER_MODE};
use super::parts;
use super::sample::Sample;
use super::shape;
use super::sorter::{Batch, HEADER, attr_and_ids, whole_record};
use super::stacks::{Sources, Stacks};
use crate::import::bytes::Window;
use crate::import::{Importer, Report, Stopped};

/// One recording as it is read.
pub(super) struct Reader<'a, 'b> {
    importer: &'a mut Importer<'b>,
    attrs: Attrs,
    event_names: Vec<Option<NameId>>,
    /// Whether the sink knows the list of events.
    has_listed: bool,
    features: Features,
    stacks: Stacks,
    report: Report,
    lost: Lost,
    counters: Counters,
    latest: u64,
}

/// What the kernel says that it dropped: records of any kind as it happens, and samples once at
/// the end, which are among the former.
#[derive(Default)]
struct Lost {
    n_records: u64,
    n_samples: u64,
}

impl<'a, 'b> Reader<'a, 'b> {
    pub(super) fn new(importer: &'a mut Importer<'b>, attrs: Attrs, report: Report) -> Self {
        Self {
            importer,
            attrs,
            event_names: Vec::new(),
            has_listed: false,
            features: Features::default(),
            stacks: Stacks::default(),
            report,
            lost: Lost::default(),
            counters: Counters::default(),
            latest: 0,
        }
    }

    /// Reads all records up to `end`; `None` when only the stream's end says.
    pub(super) fn run<R: Read + Send>(
        mut self,
        window: Window<R>,
        parts: Vec<Window<R>>,
        features: Features,
        end: Option<u64>,
    ) -> Report {
        self.importer.symbols.prepare();
        let feed = Feed::new(window, self.attrs.clone(), end);
        let parts = parts.into_iter();
        let parts = parts.map(|part| Feed::new(part, self.attrs.clone(), None));
        let parts: Vec<Feed<R>> = parts.collect();
        features.name_events(&mut self.attrs);
        self.features = features;
        self.learn_features();
        self.report.stopped = if parts.is_empty() {
            feed.run(&mut |batch| self.take(batch))
        } else {
            self.run_parts([feed].into_iter().chain(parts).collect())
        };
        self.report
    }

    /// Reads streams that are in order only in themselves.
    fn run_parts<R: Read + Send>(&mut self, feeds: Vec<Feed<R>>) -> Option<Stopped> {
        let this = RefCell::new(self);
        parts::run(
            feeds,
            &mut |at_once| this.borrow_mut().take_at_once(at_once),
            &mut |time, record| this.borrow_mut().take_due(time, record),
        )
    }

    fn take(&mut self, batch: &Batch) {
        self.take_at_once(&batch.at_once);
        for (time, record) in batch.due.iter() {
            self.take_due(time, record);
        }
    }

    fn take_at_once(&mut self, mut at_once: &[u8]) {
        while let Some(record) = whole_record(at_once) {
            if let Some((kind, misc, _)) = header(&mut Fields(record)) {
                self.apply(kind, misc, &record[HEADER..]);
            }
            at_once = &at_once[record.len()..];
        }
    }

    fn take_due(&mut self, time: u64, record: &[u8]) {
        self.report.n_unordered += u64::from(time < self.latest);
        self.latest = self.latest.max(time);
        if let Some((kind, misc, _)) = header(&mut Fields(record)) {
            self.apply(kind, misc, &record[HEADER..]);
        }
    }

    fn learn_features(&mut self) {
        let (node, release) = self.features.origin();
        self.importer.symbols.recorded_on(node, release);
        self.importer.machine.learn_build_ids(&self.features);
    }

    fn apply_of_perf(&mut self, kind: u32, body: &[u8]) {
        match kind {
            kind::HEADER_ATTR => {
                if let Some((attr, ids)) = attr_and_ids(body) {
                    self.attrs.add(attr, ids);
                }
            }
            kind::HEADER_FEATURE => {
                self.features.take(Fields(body));
                self.features.name_events(&mut self.attrs);
                self.learn_features();
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

    /// Takes in what a record says.
    fn apply(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let understood = match kind {
            kind::SAMPLE => self.sample(misc, body),
            _ if !self.can_be(kind, misc, body) => None,
            kind::FIRST_OF_PERF.. => {
                self.apply_of_perf(kind, body);
                Some(())
            }
            _ => self.apply_of_kernel(kind, misc, body),
        };
        self.report.n_skipped += u64::from(understood.is_none());
    }

    fn can_be(&self, kind: u32, misc: u16, body: &[u8]) -> bool {
        let attr = self.attrs.list.get(self.attrs.of_record(kind, body));
        shape::can_be(kind, misc, body, attr)
    }

    /// Takes in what the kernel tells besides samples.
    fn apply_of_kernel(&mut self, kind: u32, misc: u16, body: &[u8]) -> Option<()> {
        let fields = Fields(body);
        let (machine, tables) = (&mut self.importer.machine, &mut self.importer.tables);
        match kind {
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
        }
    }

    fn lost(&mut self, mut fields: Fields<'_>, has_id: bool) -> Option<()> {
        if has_id {
            fields.u64()?;
        }
        let of_kind = if has_id {
            &mut self.lost.n_records
        } else {
            &mut self.lost.n_samples
        };
        *of_kind = of_kind.saturating_add(fields.u64()?);
        self.report.n_lost = self.lost.n_records.max(self.lost.n_samples);
        Some(())
    }

    fn sample(&mut self, misc: u16, body: &[u8]) -> Option<()> {
        self.list_events();
        let at = self.attrs.known_of_record(kind::SAMPLE, body)?;
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
            let (stack, is_whole) = self.stacks.stack(&mut sources, &raw, mode);
            self.report.n_not_unwound += u64::from(!is_whole);
            stack
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
        self.report.n_odd += u64::from(raw.is_too_long);
        match raw.group {
            None => self.deliver(&sample),
            Some(group) => {
                let is_inherited = attr.is_inherited;
                self.deliver_group(group, is_inherited, sample)?;
            }
        }
        Some(())
    }

    fn deliver(&mut self, sample: &StackSample) {
        self.report.n_samples += 1;
        let importer = &mut *self.importer;
        importer.sink.sample(sample, importer.tables.tables());
    }

    /// Hands over a sample for each event of its group that has counted on.
    fn deliver_group(
        &mut self,
        group: Group<'_>,
        is_inherited: bool,
        sample: StackSample,
    ) -> Option<()> {
        for (id, value) in group.values() {
            let event = self.event_name(self.attrs.by_id(id)?)?;
            // A counter that is handed on counts for each thread by itself.
            let thread = if is_inherited { sample.tid } else { 0 };
            let weight = self.counters.since((id, thread), value);
            if weight > 0 {
                self.deliver(&StackSample {
                    event,
                    weight,
                    ..sample
                });
            }
        }
        Some(())
    }

    /// Tells the sink which events there are. Through a pipe they come before the samples.
    fn list_events(&mut self) {
        if std::mem::replace(&mut self.has_listed, true) {
            return;
        }
        let places = 0..self.attrs.list.len();
        // perf's own event, which counts nothing.
        let places = places.filter(|&at| !self.attrs.list[at].is_dummy());
        let places: Vec<usize> = places.collect();
        let names = places.into_iter().filter_map(|at| self.event_name(at));
        let names: Vec<NameId> = names.collect();
        let tables = self.importer.tables.tables();
        self.importer.sink.events(&names, tables);
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
