//! pprof: `profile.proto`, gzip-packed or not. Samples have times only where a label says so, as those
//! that sexton writes do.

use std::io::Read;

use ahash::AHashMap;
use sexton_model::moment::Moment;
use sexton_model::stack::{Frame, FrameId, StackSample};

use super::bytes::Window;
use super::listed::{self, MAX_DEPTH, MAX_ENTRIES, Samples};
use super::wire::{Fields, Malformed, Value, fields};
use super::{Format, Importer, Position, Report};
use crate::NO_CPU;

/// The tables of a file, as they lie in it.
#[derive(Default)]
struct Tables<'b> {
    strings: Vec<&'b [u8]>,
    /// Name by id.
    functions: AHashMap<u64, u64>,
    /// File by id.
    mappings: AHashMap<u64, u64>,
    locations: AHashMap<u64, &'b [u8]>,
    /// Type and unit of each value.
    kinds: Vec<(u64, u64)>,
    time_ns: u64,
    samples: Vec<&'b [u8]>,
}

impl<'b> Tables<'b> {
    fn string(&self, number: u64) -> &'b [u8] {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        self.strings.get(number).copied().unwrap_or_default()
    }

    fn read(bytes: &'b [u8]) -> (Self, Option<(Position, &'static str)>) {
        let mut tables = Self::default();
        for field in Fields::of(bytes) {
            let (number, value) = match field {
                Ok(field) => field,
                Err(Malformed(at)) => return (tables, Some((at, "no field of pprof"))),
            };
            if !tables.add(number, value) {
                let at = Position::Byte(bytes.len() as u64);
                return (
                    tables,
                    Some((at, "a table has more than 4,000,000 entries")),
                );
            }
        }
        (tables, None)
    }

    fn add(&mut self, number: u64, value: Value<'b>) -> bool {
        let part = |wanted: u64| -> u64 {
            let found = fields(value.bytes()).find(|(number, _)| *number == wanted);
            found.map_or(0, |(_, value)| value.number())
        };
        let length = match number {
            1 => {
                self.kinds.push((part(1), part(2)));
                self.kinds.len()
            }
            2 => {
                self.samples.push(value.bytes());
                self.samples.len()
            }
            3 => {
                self.mappings.insert(part(1), part(5));
                self.mappings.len()
            }
            4 => {
                self.locations.insert(part(1), value.bytes());
                self.locations.len()
            }
            5 => {
                self.functions.insert(part(1), part(2));
                self.functions.len()
            }
            6 => {
                self.strings.push(value.bytes());
                self.strings.len()
            }
            9 => {
                self.time_ns = value.number();
                0
            }
            _ => 0,
        };
        length <= MAX_ENTRIES
    }

    /// The frames of a location, innermost first: functions that were inlined come before the one
    /// that they are in.
    fn frames(&self, importer: &mut Importer<'_>, location: u64) -> Vec<FrameId> {
        let Some(message) = self.locations.get(&location) else {
            return Vec::new();
        };
        let (mut mapping, mut address, mut names) = (0, 0, Vec::new());
        for (number, value) in fields(message) {
            match number {
                2 => mapping = value.number(),
                3 => address = value.number(),
                4 if names.len() < MAX_DEPTH => {
                    let function = fields(value.bytes()).find(|(number, _)| *number == 1);
                    let function = function.map_or(0, |(_, value)| value.number());
                    names.push(self.functions.get(&function).copied().unwrap_or(0));
                }
                _ => {}
            }
        }
        let file = self.string(self.mappings.get(&mapping).copied().unwrap_or(0));
        let module = (!file.is_empty()).then(|| importer.tables.name(&listed::text(file)));
        let n = names.len();
        let symbols: Vec<&[u8]> = match n {
            0 => vec![b""],
            _ => names.iter().map(|name| self.string(*name)).collect(),
        };
        let frames = symbols.iter().enumerate().map(|(at, name)| {
            let symbol = (!name.is_empty()).then(|| importer.tables.name(&listed::text(name)));
            importer.tables.frame(Frame {
                kind: listed::code_kind(file),
                symbol,
                module,
                address: if symbol.is_some() { 0 } else { address },
                is_inlined: at + 1 < n,
            })
        });
        frames.collect()
    }
}

/// Reads a file.
pub(super) fn read<R: Read>(importer: &mut Importer<'_>, window: Window<R>) -> Report {
    let mut report = Report::new(Format::Pprof);
    let bytes = listed::whole(window, &mut report);
    let (tables, stopped) = Tables::read(&bytes);
    if let Some((at, why)) = stopped {
        report.stop(at, why);
    }
    let (kind, unit) = tables.kinds.last().copied().unwrap_or_default();
    let event = listed::event(tables.string(kind), tables.string(unit));
    let event = importer.tables.name(&event);
    let mut places: AHashMap<u64, Vec<FrameId>> = AHashMap::new();
    let mut samples = Samples::default();
    for message in &tables.samples {
        let mut sample = Sample::read(message, &tables);
        report.has_times &= sample.at_ns.is_some();
        let mut frames = Vec::new();
        for location in std::mem::take(&mut sample.locations) {
            if frames.len() >= MAX_DEPTH || !tables.locations.contains_key(&location) {
                continue;
            }
            let found = places
                .entry(location)
                .or_insert_with(|| tables.frames(importer, location));
            frames.extend_from_slice(found);
        }
        frames.truncate(MAX_DEPTH);
        let end = Position::Byte(bytes.len() as u64);
        if !samples.has_room_for(frames.len()) {
            report.stop(end, "its stacks have more than 100,000,000 frames");
            break;
        }
        let stack = importer.tables.stack(&frames);
        let taken = samples.push(StackSample {
            at: Moment::from_ns(sample.at_ns.unwrap_or(tables.time_ns)),
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            comm: importer.tables.name(&listed::text(sample.thread)),
            cgroup: (!sample.cgroup.is_empty())
                .then(|| importer.tables.name(&listed::text(sample.cgroup))),
            state: listed::state(importer, stack),
            event,
            weight: sample.weight,
            stack,
        });
        if !taken {
            report.stop(end, "it has more than 4,000,000 samples");
            break;
        }
    }
    samples.hand_on(importer, &mut report);
    report
}

/// What a sample says, by the labels that sexton and others write.
struct Sample<'b> {
    locations: Vec<u64>,
    weight: u64,
    at_ns: Option<u64>,
    cpu: u32,
    pid: u32,
    tid: u32,
    thread: &'b [u8],
    cgroup: &'b [u8],
}

impl<'b> Sample<'b> {
    fn read(message: &'b [u8], tables: &Tables<'b>) -> Self {
        let mut sample = Self {
            locations: Vec::new(),
            weight: 0,
            at_ns: None,
            cpu: NO_CPU,
            pid: 0,
            tid: 0,
            thread: b"",
            cgroup: b"",
        };
        for (number, value) in fields(message) {
            match number {
                1 => {
                    let room = MAX_DEPTH - sample.locations.len();
                    sample.locations.extend(value.numbers().take(room));
                }
                // The last value is the one that is shown.
                2 => sample.weight = value.numbers().last().unwrap_or(sample.weight),
                3 => sample.label(value.bytes(), tables),
                _ => {}
            }
        }
        sample
    }

    fn label(&mut self, message: &'b [u8], tables: &Tables<'b>) {
        let (mut key, mut text, mut number) = (0, 0, 0);
        for (field, value) in fields(message) {
            match field {
                1 => key = value.number(),
                2 => text = value.number(),
                3 => number = value.number(),
                _ => {}
            }
        }
        let small = u32::try_from(number).unwrap_or(0);
        match tables.string(key) {
            b"time" | b"timestamp" => self.at_ns = Some(number),
            b"pid" | b"process_id" => self.pid = small,
            b"tid" | b"thread_id" => self.tid = small,
            b"core" | b"cpu" => self.cpu = small,
            b"thread" | b"comm" | b"thread_comm" => self.thread = tables.string(text),
            b"cgroup" => self.cgroup = tables.string(text),
            _ => {}
        }
    }
}
