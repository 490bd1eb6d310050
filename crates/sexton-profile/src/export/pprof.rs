//! pprof: a gzip-packed `profile.proto` (<https://github.com/google/pprof>). Each sample is an
//! entry of its own, because the format has no time but as a label.

use std::io::{self, Write};

use sexton_model::stack::{Frame, NameId, StackId, StackSample, StackTables};

use super::packing::Packing;
use crate::NO_CPU;
use crate::filter::{Filter, Matcher};
use crate::import::Sink;
use crate::names;
use crate::weight::value_type;

/// Strings that are always there, by their number; those of the recording follow.
const FIXED: [&str; 13] = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "time",
    "pid",
    "tid",
    "core",
    "thread",
    "cgroup",
    "state",
    "id",
];
const SAMPLES: u64 = 1;
const COUNT: u64 = 2;
const CPU: u64 = 3;
const NANOSECONDS: u64 = 4;
const TIME: u64 = 5;
const PID: u64 = 6;
const TID: u64 = 7;
const CORE: u64 = 8;
const THREAD: u64 = 9;
const CGROUP: u64 = 10;
/// The unit of numbers that name something. Viewers drop a zero that has no unit.
const ID: u64 = 12;

/// Writes samples as they come.
pub struct Pprof<W> {
    out: Packing<W>,
    matcher: Matcher,
    entry: Vec<u8>,
    /// Parts of an entry that are in the making.
    part: Vec<u8>,
    stacks: Stacks,
    owners: Owners,
    event: Option<NameId>,
    first_ns: Option<u64>,
    last_ns: u64,
    n_samples: u64,
    has_failed: bool,
}

impl<W: Write + Send + 'static> Pprof<W> {
    /// Writes what the filter lets pass to `out`.
    pub fn new(out: W, filter: Filter) -> io::Result<Self> {
        Ok(Self {
            out: Packing::new(out)?,
            matcher: Matcher::new(filter),
            entry: Vec::new(),
            part: Vec::new(),
            stacks: Stacks::default(),
            owners: Owners::default(),
            event: None,
            first_ns: None,
            last_ns: 0,
            n_samples: 0,
            has_failed: false,
        })
    }

    /// How many samples were written.
    pub fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// Writes what the samples refer to, and ends the file.
    pub fn finish(mut self, tables: &StackTables) -> io::Result<W> {
        if !self.has_failed {
            self.write_tables(tables);
        }
        self.out.finish()
    }

    /// What comes after the samples: their units, and what they refer to.
    fn write_tables(&mut self, tables: &StackTables) {
        let mut profile = Vec::new();
        let event = self.event.map_or("", |event| tables.name(event));
        let value = |kind: u64, unit: u64| {
            let mut value = Vec::new();
            number(&mut value, 1, kind);
            number(&mut value, 2, unit);
            value
        };
        let of_event = self.event.map_or(SAMPLES, string_of);
        let by_weight = match value_type(event) {
            ("cpu", _) => value(CPU, NANOSECONDS),
            (_, "nanoseconds") => value(of_event, NANOSECONDS),
            _ => value(of_event, COUNT),
        };
        message(&mut profile, 1, &value(SAMPLES, COUNT));
        message(&mut profile, 1, &by_weight);
        message(&mut profile, 11, &by_weight);
        number(&mut profile, 9, self.first_ns.unwrap_or(0));
        number(
            &mut profile,
            10,
            self.last_ns.saturating_sub(self.first_ns.unwrap_or(0)),
        );
        self.put(&profile);
        let mut unnamed = Vec::new();
        let first_unnamed = FIXED.len() + tables.names.len();
        for (n, frame) in tables.frames.iter().enumerate() {
            let name = match frame.symbol {
                Some(name) => string_of(name),
                None => {
                    unnamed.push(names::of_frame(
                        tables,
                        frame,
                        "",
                        names::Suffixes::default(),
                    ));
                    (first_unnamed + unnamed.len() - 1) as u64
                }
            };
            self.put(&place(n as u64 + 1, frame, name));
        }
        let recorded = tables.names.iter().map(|name| &**name);
        let unnamed = unnamed.iter().map(String::as_str);
        for text in FIXED.into_iter().chain(recorded).chain(unnamed) {
            let mut string = Vec::new();
            message(&mut string, 6, text.as_bytes());
            self.put(&string);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.has_failed |= !self.out.write(bytes);
    }

    fn write(&mut self, sample: &StackSample, tables: &StackTables) {
        self.entry.clear();
        let places = self.stacks.places(sample.stack, tables);
        self.entry.extend_from_slice(places);
        self.part.clear();
        varint(&mut self.part, 1);
        varint(&mut self.part, sample.weight);
        message(&mut self.entry, 2, &self.part);
        self.part.clear();
        number(&mut self.part, 1, TIME);
        number(&mut self.part, 3, sample.at.as_ns());
        number(&mut self.part, 4, NANOSECONDS);
        message(&mut self.entry, 3, &self.part);
        self.entry.extend_from_slice(self.owners.labels(sample));
        self.part.clear();
        varint(&mut self.part, 2 << 3 | 2);
        varint(&mut self.part, self.entry.len() as u64);
        self.has_failed |= !(self.out.write(&self.part) && self.out.write(&self.entry));
    }
}

/// Stacks as they are written. Most samples have the stack of one before.
#[derive(Default)]
struct Stacks {
    recent: Vec<(StackId, Vec<u8>)>,
}

/// A power of two.
const N_RECENT_STACKS: usize = 1 << 12;

impl Stacks {
    fn places(&mut self, stack: StackId, tables: &StackTables) -> &[u8] {
        if self.recent.is_empty() {
            // A stack without frames is written as nothing, so that is already right.
            self.recent
                .resize(N_RECENT_STACKS, (StackId::EMPTY, Vec::new()));
        }
        let (known, written) = &mut self.recent[stack.0 as usize % N_RECENT_STACKS];
        if *known != stack {
            *known = stack;
            let mut places = Vec::with_capacity(64);
            for frame in tables.frames_of(stack) {
                varint(&mut places, u64::from(frame.0) + 1);
            }
            written.clear();
            message(written, 1, &places);
        }
        written
    }
}

/// Whose samples they are, as labels. Most samples have the owner of one shortly before.
#[derive(Default)]
struct Owners {
    recent: Vec<(Option<Owner>, Vec<u8>)>,
}

/// Process, thread, core, the thread's name, cgroup.
type Owner = (u32, u32, u32, NameId, Option<NameId>);

/// A power of two.
const N_RECENT_OWNERS: usize = 256;

impl Owners {
    fn labels(&mut self, sample: &StackSample) -> &[u8] {
        if self.recent.is_empty() {
            self.recent.resize_with(N_RECENT_OWNERS, Default::default);
        }
        let owner = (
            sample.pid,
            sample.tid,
            sample.cpu,
            sample.comm,
            sample.cgroup,
        );
        let slot = (sample.tid ^ sample.cpu << 4) as usize % N_RECENT_OWNERS;
        let (known, labels) = &mut self.recent[slot];
        if *known != Some(owner) {
            *known = Some(owner);
            labels.clear();
            write_labels(labels, sample);
        }
        labels
    }
}

fn write_labels(labels: &mut Vec<u8>, sample: &StackSample) {
    const TEXT: u64 = 2;
    const NUMBER: u64 = 3;
    let mut label = |key: u64, field: u64, value: u64| {
        let mut label = Vec::with_capacity(16);
        number(&mut label, 1, key);
        number(&mut label, field, value);
        if field == NUMBER {
            number(&mut label, 4, ID);
        }
        message(labels, 3, &label);
    };
    label(PID, NUMBER, u64::from(sample.pid));
    label(TID, NUMBER, u64::from(sample.tid));
    if sample.cpu != NO_CPU {
        label(CORE, NUMBER, u64::from(sample.cpu));
    }
    label(THREAD, TEXT, string_of(sample.comm));
    if let Some(cgroup) = sample.cgroup {
        label(CGROUP, TEXT, string_of(cgroup));
    }
}

impl<W: Write + Send + 'static> Sink for Pprof<W> {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        if self.has_failed || !self.matcher.accepts(sample, tables) {
            return;
        }
        self.event.get_or_insert(sample.event);
        self.first_ns.get_or_insert(sample.at.as_ns());
        self.last_ns = self.last_ns.max(sample.at.as_ns());
        self.n_samples += 1;
        self.write(sample, tables);
    }

    /// Nobody could name them later: what this file says of an address is the function.
    fn wants_addresses(&self) -> bool {
        false
    }

    fn matcher(&self) -> Option<&Matcher> {
        Some(&self.matcher)
    }

    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        Some(&mut self.matcher)
    }
}

/// A frame as a function and the one place in it.
fn place(id: u64, frame: &Frame, name: u64) -> Vec<u8> {
    let mut function = Vec::new();
    number(&mut function, 1, id);
    number(&mut function, 2, name);
    number(&mut function, 3, name);
    number(&mut function, 4, frame.module.map_or(0, string_of));
    let mut line = Vec::new();
    number(&mut line, 1, id);
    let mut location = Vec::new();
    number(&mut location, 1, id);
    number(&mut location, 3, frame.address);
    message(&mut location, 4, &line);
    let mut both = Vec::new();
    message(&mut both, 5, &function);
    message(&mut both, 4, &location);
    both
}

fn string_of(name: NameId) -> u64 {
    u64::from(name.0) + FIXED.len() as u64
}

/// Protobuf: a field with a number.
fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

/// Protobuf: a field with bytes.
fn message(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
