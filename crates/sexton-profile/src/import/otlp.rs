//! Profiles of OpenTelemetry: a `ProfilesData` or a request to a collector, which have the same
//! fields, packed with gzip or not.

use std::io::Read;

use ahash::AHashMap;
use sexton_model::moment::Moment;
use sexton_model::stack::{CodeKind, Frame, FrameId, NameId, StackId, StackSample};

use super::bytes::Window;
use super::listed::{self, MAX_DEPTH, MAX_ENTRIES, Samples};
use super::wire::{Fields, Malformed, fields};
use super::{Format, Importer, Position, Report};
use crate::NO_CPU;
use crate::export::otlp::{CGROUP, CORE, PID, THREAD, TID};

/// Of a place in the kernel.
const FRAME_TYPE: &[u8] = b"profile.frame.type";
const KERNEL: &[u8] = b"kernel";

/// The tables of a file, as they lie in it.
#[derive(Default)]
struct Dictionary<'b> {
    mappings: Vec<&'b [u8]>,
    locations: Vec<&'b [u8]>,
    functions: Vec<&'b [u8]>,
    strings: Vec<&'b [u8]>,
    attributes: Vec<&'b [u8]>,
    stacks: Vec<&'b [u8]>,
}

fn entry<'b>(table: &[&'b [u8]], number: u64) -> &'b [u8] {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    table.get(number).copied().unwrap_or_default()
}

/// A field of a message that is a number.
fn part(message: &[u8], wanted: u64) -> u64 {
    let found = fields(message).find(|(number, _)| *number == wanted);
    found.map_or(0, |(_, value)| value.number())
}

impl<'b> Dictionary<'b> {
    /// `false` when a table is too long.
    fn read(&mut self, message: &'b [u8]) -> bool {
        for (number, value) in fields(message) {
            let table = match number {
                1 => &mut self.mappings,
                2 => &mut self.locations,
                3 => &mut self.functions,
                5 => &mut self.strings,
                6 => &mut self.attributes,
                7 => &mut self.stacks,
                _ => continue,
            };
            if table.len() >= MAX_ENTRIES {
                return false;
            }
            table.push(value.bytes());
        }
        true
    }

    fn string(&self, number: u64) -> &'b [u8] {
        entry(&self.strings, number)
    }

    /// The name of an attribute, its text and its number.
    fn attribute(&self, number: u64) -> (&'b [u8], &'b [u8], u64) {
        let message = entry(&self.attributes, number);
        let value = fields(message).find(|(number, _)| *number == 2);
        let value = value.map_or(&[][..], |(_, value)| value.bytes());
        let (mut text, mut count) = (&[][..], 0);
        for (number, value) in fields(value) {
            match number {
                1 => text = value.bytes(),
                3 => count = value.number(),
                8 => text = self.string(value.number()),
                _ => {}
            }
        }
        (self.string(part(message, 1)), text, count)
    }

    /// The frames of a location, innermost first.
    fn frames(&self, importer: &mut Importer<'_>, location: u64) -> Vec<FrameId> {
        let message = entry(&self.locations, location);
        let (mut mapping, mut address, mut names) = (0, 0, Vec::new());
        let mut kind = None;
        for (number, value) in fields(message) {
            match number {
                1 => mapping = value.number(),
                2 => address = value.number(),
                3 if names.len() < MAX_DEPTH => {
                    let function = entry(&self.functions, part(value.bytes(), 1));
                    names.push(self.string(part(function, 1)));
                }
                4 => {
                    for attribute in value.numbers().take(MAX_DEPTH) {
                        if let (FRAME_TYPE, text, _) = self.attribute(attribute) {
                            let is_kernel = text == KERNEL;
                            kind = Some(if is_kernel {
                                CodeKind::Kernel
                            } else {
                                CodeKind::User
                            });
                        }
                    }
                }
                _ => {}
            }
        }
        let file = self.string(part(entry(&self.mappings, mapping), 4));
        let module = (!file.is_empty()).then(|| importer.tables.name(&listed::text(file)));
        let n = names.len();
        if n == 0 {
            names.push(&[][..]);
        }
        let frames = names.iter().enumerate().map(|(at, name)| {
            let symbol = (!name.is_empty()).then(|| importer.tables.name(&listed::text(name)));
            importer.tables.frame(Frame {
                kind: kind.unwrap_or_else(|| listed::code_kind(file)),
                symbol,
                module,
                address: if symbol.is_some() { 0 } else { address },
                is_inlined: at + 1 < n,
            })
        });
        frames.collect()
    }
}

/// What was made of the tables so far.
struct Reading<'b> {
    dictionary: Dictionary<'b>,
    places: AHashMap<u64, Vec<FrameId>>,
    stacks: AHashMap<u64, StackId>,
    samples: Samples,
}

/// Reads a file.
pub(super) fn read<R: Read>(importer: &mut Importer<'_>, window: Window<R>) -> Report {
    let mut report = Report::new(Format::Otlp);
    let bytes = listed::whole(window, &mut report);
    let end = Position::Byte(bytes.len() as u64);
    let mut dictionary = Dictionary::default();
    let mut resources = Vec::new();
    for field in Fields::of(&bytes) {
        match field {
            Ok((1, value)) if resources.len() < MAX_ENTRIES => resources.push(value.bytes()),
            Ok((2, value)) => {
                if !dictionary.read(value.bytes()) {
                    report.stop(end, "a table has more than 4,000,000 entries");
                }
            }
            Ok(_) => {}
            Err(Malformed(at)) => report.stop(at, "no field of OTLP profiles"),
        }
    }
    let mut reading = Reading {
        dictionary,
        places: AHashMap::new(),
        stacks: AHashMap::new(),
        samples: Samples::default(),
    };
    let scopes = resources.iter().flat_map(|resource| parts(resource, 2));
    let profiles = scopes.flat_map(|scope| parts(scope, 2));
    for profile in profiles {
        if let Err(why) = reading.profile(importer, profile, &mut report) {
            report.stop(end, why);
            break;
        }
    }
    reading.samples.hand_on(importer, &mut report);
    report
}

/// The messages of one field.
fn parts(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    let found = fields(message).filter(move |(number, _)| *number == wanted);
    found.map(|(_, value)| value.bytes())
}

impl Reading<'_> {
    fn profile(
        &mut self,
        importer: &mut Importer<'_>,
        profile: &[u8],
        report: &mut Report,
    ) -> Result<(), &'static str> {
        let kind = parts(profile, 1).next().unwrap_or_default();
        let (kind, unit) = (part(kind, 1), part(kind, 2));
        let event = listed::event(self.dictionary.string(kind), self.dictionary.string(unit));
        let event = importer.tables.name(&event);
        let begin_ns = part(profile, 3);
        for sample in parts(profile, 2) {
            self.sample(importer, sample, (event, begin_ns), report)?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        importer: &mut Importer<'_>,
        message: &[u8],
        (event, begin_ns): (NameId, u64),
        report: &mut Report,
    ) -> Result<(), &'static str> {
        let stack = self.stack(importer, part(message, 1))?;
        let mut like = StackSample {
            at: Moment::from_ns(begin_ns),
            cpu: NO_CPU,
            pid: 0,
            tid: 0,
            comm: importer.tables.name(""),
            cgroup: None,
            state: listed::state(importer, stack),
            event,
            weight: 1,
            stack,
        };
        let (mut values, mut times) = (Vec::new(), Vec::new());
        for (number, value) in fields(message) {
            match number {
                2 => {
                    for attribute in value.numbers().take(MAX_DEPTH) {
                        self.attribute(importer, attribute, &mut like);
                    }
                }
                4 => values.extend(value.numbers()),
                5 => times.extend(value.fixed()),
                _ => {}
            }
        }
        // One value for each time, or one for all of them, or times that count one each.
        report.has_times &= !times.is_empty();
        if times.is_empty() {
            like.weight = values
                .iter()
                .fold(0, |sum: u64, value| sum.saturating_add(*value));
            return self.push(like);
        }
        let n = times.len() as u64;
        for (at, time) in times.into_iter().enumerate() {
            like.at = Moment::from_ns(time);
            like.weight = match values.as_slice() {
                [] => 1,
                [all] => all / n,
                values => values.get(at).copied().unwrap_or(0),
            };
            self.push(like)?;
        }
        Ok(())
    }

    fn push(&mut self, sample: StackSample) -> Result<(), &'static str> {
        match self.samples.push(sample) {
            true => Ok(()),
            false => Err("it has more than 4,000,000 samples"),
        }
    }

    fn stack(&mut self, importer: &mut Importer<'_>, number: u64) -> Result<StackId, &'static str> {
        if let Some(known) = self.stacks.get(&number) {
            return Ok(*known);
        }
        let mut frames = Vec::new();
        let message = entry(&self.dictionary.stacks, number);
        let indices = fields(message).filter(|(number, _)| *number == 1);
        let indices = indices.flat_map(|(_, value)| value.numbers());
        for location in indices.take(MAX_DEPTH) {
            let (dictionary, places) = (&self.dictionary, &mut self.places);
            if frames.len() >= MAX_DEPTH || location >= dictionary.locations.len() as u64 {
                continue;
            }
            let found = places
                .entry(location)
                .or_insert_with(|| dictionary.frames(importer, location));
            frames.extend_from_slice(found);
        }
        frames.truncate(MAX_DEPTH);
        if !self.samples.has_room_for(frames.len()) {
            return Err("its stacks have more than 100,000,000 frames");
        }
        let stack = importer.tables.stack(&frames);
        self.stacks.insert(number, stack);
        Ok(stack)
    }

    fn attribute(&self, importer: &mut Importer<'_>, number: u64, sample: &mut StackSample) {
        let (key, text, count) = self.dictionary.attribute(number);
        let small = u32::try_from(count).unwrap_or(0);
        match std::str::from_utf8(key) {
            Ok(PID) => sample.pid = small,
            Ok(TID) => sample.tid = small,
            Ok(CORE) => sample.cpu = small,
            Ok(THREAD) => sample.comm = importer.tables.name(&listed::text(text)),
            Ok(CGROUP) => sample.cgroup = Some(importer.tables.name(&listed::text(text))),
            _ => {}
        }
    }
}
