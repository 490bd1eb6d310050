//! pprof of one owner in one window, for receivers: samples are added up, and only what they refer
//! to is in the tables. Not packed: receivers bound what a profile unpacks to.

use ahash::AHashMap;
use prost::Message as _;
use sexton_model::stack::{FrameId, NameId, StackTables};

use crate::names::{self, Suffixes};
use crate::proto::pprof::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use crate::window::WindowProfile;

/// A profile, and how many of its stacks were cut.
#[derive(Debug)]
pub struct Encoded {
    /// `profile.proto`, not packed.
    pub bytes: Vec<u8>,
    /// Stacks whose outermost frames were left out.
    pub n_cut: u64,
}

/// Writes a profile whose stacks have at most `max_depth` frames.
pub fn encode(window: &WindowProfile, max_depth: usize) -> Encoded {
    let mut tables = Tables::new(&window.tables);
    let mut n_cut = 0;
    let samples = window.samples.iter().map(|sample| {
        let mut frames = window.tables.frames_of(sample.stack);
        let places = frames.by_ref().take(max_depth);
        let location_id = places.map(|frame| tables.location(frame)).collect();
        n_cut += u64::from(frames.next().is_some());
        Sample {
            location_id,
            value: vec![signed(sample.n), signed(sample.weight)],
        }
    });
    let samples: Vec<Sample> = samples.collect();
    let (kind, unit) = window.kind();
    let by_weight = tables.value_type(&kind, unit);
    let sample_type = vec![tables.value_type("samples", "count"), by_weight];
    let n = window.n_samples().max(1);
    let weight: u64 = window.samples.iter().map(|it| it.weight).sum();
    let profile = Profile {
        sample_type,
        sample: samples,
        mapping: tables.mappings,
        location: tables.locations,
        function: tables.functions,
        string_table: tables.strings,
        time_nanos: signed(window.start_ns),
        duration_nanos: signed(window.duration_ns),
        period_type: Some(by_weight),
        period: signed(weight / n),
    };
    Encoded {
        bytes: profile.encode_to_vec(),
        n_cut,
    }
}

/// What samples refer to, each thing once, numbered from 1.
struct Tables<'t> {
    of: &'t StackTables,
    strings: Vec<String>,
    numbers: AHashMap<String, i64>,
    functions: Vec<Function>,
    by_name: AHashMap<i64, u64>,
    mappings: Vec<Mapping>,
    by_module: AHashMap<NameId, u64>,
    locations: Vec<Location>,
    by_frame: AHashMap<FrameId, u64>,
}

impl<'t> Tables<'t> {
    fn new(of: &'t StackTables) -> Self {
        Self {
            of,
            strings: vec![String::new()],
            numbers: AHashMap::from_iter([(String::new(), 0)]),
            functions: Vec::new(),
            by_name: AHashMap::new(),
            mappings: Vec::new(),
            by_module: AHashMap::new(),
            locations: Vec::new(),
            by_frame: AHashMap::new(),
        }
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = signed(self.strings.len() as u64);
        self.strings.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            r#type: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn location(&mut self, id: FrameId) -> u64 {
        if let Some(known) = self.by_frame.get(&id) {
            return *known;
        }
        let number = self.locations.len() as u64 + 1;
        let frame = self.of.frame(id).copied();
        let name = match &frame {
            Some(frame) => names::of_frame(self.of, frame, "", Suffixes::default()),
            None => names::UNKNOWN.to_owned(),
        };
        let function_id = self.function(&name);
        let module = frame.and_then(|frame| frame.module);
        let location = Location {
            id: number,
            mapping_id: module.map_or(0, |module| self.mapping(module)),
            address: frame.map_or(0, |frame| frame.address),
            line: vec![Line { function_id }],
        };
        self.locations.push(location);
        self.by_frame.insert(id, number);
        number
    }

    fn function(&mut self, name: &str) -> u64 {
        let name = self.string(name);
        if let Some(known) = self.by_name.get(&name) {
            return *known;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.push(Function {
            id,
            name,
            system_name: name,
            filename: 0,
        });
        self.by_name.insert(name, id);
        id
    }

    fn mapping(&mut self, module: NameId) -> u64 {
        if let Some(known) = self.by_module.get(&module) {
            return *known;
        }
        let id = self.mappings.len() as u64 + 1;
        let of = self.of;
        let filename = self.string(of.name(module));
        self.mappings.push(Mapping {
            id,
            filename,
            has_functions: true,
        });
        self.by_module.insert(module, id);
        id
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
