//! Records of a bundle in the order of time, from sources that each cover a span: they
//! are opened when their span is reached, and merged.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::rc::Rc;
use std::vec::IntoIter;

use sexton_model::fact::Fact;
use sexton_model::fact::klog::KLOG_EVENT;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;

use crate::SENSOR;
use crate::bundle::Bundle;
use crate::ledger::Segment;
use crate::row::{Row, sort_by_time};
use crate::sealed::{Damage, Group, Sealed};
use crate::wal::Block;

/// How many unknown facts are named.
const MAX_NAMES: usize = 8;

/// Which records are asked for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) facts: Option<Vec<&'static Fact>>,
}

impl Wanted {
    fn overlaps(&self, from_ns: u64, to_ns: u64) -> bool {
        from_ns <= self.to_ns && to_ns >= self.from_ns
    }

    fn takes(&self, row: &Row) -> bool {
        self.overlaps(row.at_ns, row.at_ns)
            && match (&self.facts, row.known.fact()) {
                (Some(facts), Some(fact)) => facts.contains(&fact),
                _ => true,
            }
    }
}

/// Something that holds records from a moment on.
#[derive(Debug)]
enum Source {
    Segment(Segment),
    Group(Rc<Sealed>, Segment, Group),
    /// Of the log at this place.
    Block(usize, Block),
    Said(Box<Record>),
}

#[derive(Debug)]
struct Waiting {
    from_ns: u64,
    /// Of sources that reach the same moment: sequence, then place in the segment.
    order: (u64, usize),
    source: Source,
}

/// When it is, the order of its source, and where that is open.
type Head = (u64, (u64, usize), usize);

/// Records in the order of time. See [`Bundle::stream`].
#[derive(Debug)]
pub struct Stream<'a> {
    bundle: &'a Bundle,
    wanted: Wanted,
    /// The last is the next to be opened.
    waiting: Vec<Waiting>,
    open: Vec<IntoIter<Record>>,
    /// The next record of each open source, by time and order.
    heads: BinaryHeap<Reverse<Head>>,
    unknown: Unknown,
    told: Told,
    last_ns: u64,
}

/// Lines of the kernel's log that were told. A recorder that begins again reads the whole
/// ring again; a bundle is of one boot, in which a line has a number of its own.
#[derive(Debug, Default)]
struct Told(HashSet<u64>);

impl Told {
    /// More are not remembered: no ring holds as many.
    const MAX_LINES: usize = 1 << 20;

    fn is_again(&mut self, record: &Record) -> bool {
        let Some(seq) = record.says(&KLOG_EVENT).and_then(|line| line.seq) else {
            return false;
        };
        let is_known = self.0.contains(&seq);
        if self.0.len() < Self::MAX_LINES {
            self.0.insert(seq);
        }
        is_known
    }
}

#[derive(Debug, Default)]
struct Unknown {
    n_records: u64,
    names: BTreeSet<String>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(bundle: &'a Bundle, wanted: Wanted) -> Self {
        let mut stream = Self {
            bundle,
            last_ns: wanted.from_ns,
            wanted,
            waiting: Vec::new(),
            open: Vec::new(),
            heads: BinaryHeap::new(),
            unknown: Unknown::default(),
            told: Told::default(),
        };
        for segment in &bundle.segments {
            let order = (segment.sequence, 0);
            let source = Source::Segment(segment.clone());
            stream.wait(segment.from_ns, segment.to_ns, order, source);
        }
        stream.wait_for_logs();
        stream.sort_waiting();
        stream
    }

    fn wait_for_logs(&mut self) {
        let bundle = self.bundle;
        for (place, log) in bundle.logs.iter().enumerate() {
            let Ok(log) = log.lock() else { continue };
            for (i, block) in log.blocks.iter().enumerate() {
                let source = Source::Block(place, *block);
                self.wait(block.from_ns, block.to_ns, (log.sequence, i), source);
            }
            if let Some(torn) = log.torn {
                let end_ns = log.span_ns().map_or_else(|| self.end_ns(), |(_, to)| to);
                let trouble = format!(
                    "its last {} bytes are not whole: cut, or being written",
                    torn.bytes
                );
                self.wait_for_trouble(end_ns, torn.n_records, &trouble);
            }
        }
        if let Some(trouble) = &bundle.log_trouble {
            self.wait_for_trouble(self.end_ns(), 0, trouble);
        }
    }

    fn end_ns(&self) -> u64 {
        let span = self.bundle.span();
        span.map_or(self.bundle.created().as_ns(), |span| span.end().as_ns())
    }

    /// Whatever comes after the end may be missing, so every window that is open there is
    /// told.
    fn wait_for_trouble(&mut self, end_ns: u64, n_records: u64, trouble: &str) {
        let text =
            format!("the open segment is unreadable from {end_ns} ns after boot on: {trouble}");
        let gap = gap(end_ns, Why::Lost(n_records), text);
        self.wait(end_ns, u64::MAX, (u64::MAX, 0), Source::Said(Box::new(gap)));
    }

    fn wait(&mut self, from_ns: u64, to_ns: u64, order: (u64, usize), source: Source) {
        if self.wanted.overlaps(from_ns, to_ns) {
            self.waiting.push(Waiting {
                from_ns,
                order,
                source,
            });
        }
    }

    fn sort_waiting(&mut self) {
        self.waiting
            .sort_by_key(|waiting| Reverse((waiting.from_ns, waiting.order)));
    }

    /// Opens every source that may hold the next record.
    fn open_reached(&mut self) {
        while let Some(next) = self.waiting.last() {
            let head = self.heads.peek().map(|Reverse((at, ..))| *at);
            if head.is_some_and(|head| next.from_ns > head) {
                return;
            }
            let Some(Waiting { order, source, .. }) = self.waiting.pop() else {
                return;
            };
            let records = match source {
                Source::Segment(segment) => self.open_segment(segment),
                Source::Group(sealed, segment, group) => match sealed.rows(&group) {
                    Ok(rows) => self.records(rows),
                    Err(damage) => {
                        vec![self.damaged(
                            &segment,
                            group.checked.from_ns,
                            group.checked.to_ns,
                            &damage,
                        )]
                    }
                },
                Source::Block(place, block) => self.block(place, &block),
                Source::Said(record) => vec![*record],
            };
            self.add(records, order);
        }
    }

    fn open_segment(&mut self, segment: Segment) -> Vec<Record> {
        let path = self.bundle.dir.join("records").join(segment.file_name());
        let sealed = match Sealed::open(&path) {
            Ok(sealed) => Rc::new(sealed),
            Err(damage) => {
                return vec![self.damaged(&segment, segment.from_ns, segment.to_ns, &damage)];
            }
        };
        for (i, group) in sealed.groups.iter().enumerate() {
            let source = Source::Group(Rc::clone(&sealed), segment.clone(), *group);
            self.wait(
                group.checked.from_ns,
                group.checked.to_ns,
                (segment.sequence, i),
                source,
            );
        }
        self.sort_waiting();
        Vec::new()
    }

    fn block(&mut self, place: usize, block: &Block) -> Vec<Record> {
        let log = self.bundle.logs.get(place).and_then(|log| log.lock().ok());
        let rows = log.map(|mut log| log.rows(block));
        match rows {
            Some(Ok(rows)) => self.records(rows),
            Some(Err(error)) => {
                let text = format!(
                    "the open segment is unreadable from {} to {} ns after boot: {error}",
                    block.from_ns, block.to_ns
                );
                vec![gap(block.from_ns, Why::Lost(block.n_records as u64), text)]
            }
            None => Vec::new(),
        }
    }

    fn records(&mut self, mut rows: Vec<Row>) -> Vec<Record> {
        rows.retain(|row| self.wanted.takes(row));
        sort_by_time(&mut rows);
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            let known = std::sync::Arc::clone(&row.known);
            match row.into_record() {
                Some(record) => records.push(record),
                None => self
                    .unknown
                    .add(&known.series.fact, &known.series.subject_kind),
            }
        }
        records
    }

    fn add(&mut self, records: Vec<Record>, order: (u64, usize)) {
        let mut records = records.into_iter();
        let Some(first) = records.as_slice().first() else {
            return;
        };
        let at = first.at.as_ns();
        let slot = self.open.iter().position(|open| open.as_slice().is_empty());
        let slot = slot.unwrap_or_else(|| {
            self.open.push(Vec::new().into_iter());
            self.open.len() - 1
        });
        std::mem::swap(&mut self.open[slot], &mut records);
        self.heads.push(Reverse((at, order, slot)));
    }

    fn damaged(&self, segment: &Segment, from_ns: u64, to_ns: u64, damage: &Damage) -> Record {
        let why = match damage {
            Damage::Gone => Why::Vanished,
            Damage::Denied => Why::Denied,
            Damage::Malformed(_) => Why::Malformed,
        };
        let name = segment.file_name();
        let text = format!(
            "records from {from_ns} to {to_ns} ns after boot cannot be read: {name}: {damage}"
        );
        gap(from_ns.max(self.wanted.from_ns), why, text)
    }
}

impl Iterator for Stream<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let record = self.next_stored()?;
            if !self.told.is_again(&record) {
                return Some(record);
            }
        }
    }
}

impl Stream<'_> {
    fn next_stored(&mut self) -> Option<Record> {
        self.open_reached();
        let Some(Reverse((at, order, slot))) = self.heads.pop() else {
            return self.unknown.take(self.last_ns);
        };
        self.last_ns = at;
        let record = self.open[slot].next();
        match self.open[slot].as_slice().first() {
            Some(next) => self.heads.push(Reverse((next.at.as_ns(), order, slot))),
            None => self.open[slot] = Vec::new().into_iter(),
        }
        record
    }
}

impl Unknown {
    fn add(&mut self, fact: &str, subject_kind: &str) {
        self.n_records += 1;
        if self.names.len() < MAX_NAMES {
            self.names.insert(format!("{fact} of {subject_kind}"));
        }
    }

    fn take(&mut self, at_ns: u64) -> Option<Record> {
        let unknown = std::mem::take(self);
        if unknown.n_records == 0 {
            return None;
        }
        let names: Vec<String> = unknown.names.into_iter().collect();
        let text = format!(
            "{} records are of a newer sexton and cannot be understood: {}",
            unknown.n_records,
            sexton_model::text::escape(names.join(", ").as_bytes())
        );
        let mut record = gap(at_ns, Why::Unsupported, text);
        if let Body::Gap(gap) = &mut record.body {
            gap.remedy = Some("read the bundle with a newer sexton".into());
        }
        Some(record)
    }
}

fn gap(at_ns: u64, why: Why, text: String) -> Record {
    Record {
        at: Moment::from_ns(at_ns),
        sensor: SENSOR.into(),
        subject: Subject::node(),
        body: Body::Gap(Box::new(Gap::new(SENSOR, why, text))),
    }
}
