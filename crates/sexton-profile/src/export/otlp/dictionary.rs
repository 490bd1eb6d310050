//! The tables of a message. The first entry of each is the zero value, by which the format says that
//! there is none.

use ahash::AHashMap;
use sexton_model::stack::{CodeKind, FrameId, StackId, StackTables};

use crate::names::{self, Suffixes};
use crate::proto::otlp::{
    AnyValue, Function, KeyValueAndUnit, Line, Link, Location, Mapping, ProfilesDictionary, Stack,
    ValueType, any_value,
};

/// What kind of code a place is; `kernel` and `native` are the words of the conventions.
pub(crate) const FRAME_TYPE: &str = "profile.frame.type";
pub(crate) const KERNEL: &str = "kernel";
const NATIVE: &str = "native";

/// Tables that are being built.
pub(super) struct Dictionary {
    tables: ProfilesDictionary,
    max_depth: usize,
    n_cut: u64,
    strings: AHashMap<String, i32>,
    functions: AHashMap<i32, i32>,
    mappings: AHashMap<i32, i32>,
    attributes: AHashMap<(i32, Result<String, i64>), i32>,
    stacks: AHashMap<StackId, i32>,
    frames: AHashMap<FrameId, i32>,
    /// The tables that the last two refer to.
    of: usize,
}

impl Dictionary {
    pub(super) fn new(max_depth: usize) -> Self {
        let tables = ProfilesDictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            link_table: vec![Link::default()],
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
        };
        Self {
            tables,
            max_depth,
            n_cut: 0,
            strings: AHashMap::from_iter([(String::new(), 0)]),
            functions: AHashMap::new(),
            mappings: AHashMap::new(),
            attributes: AHashMap::new(),
            stacks: AHashMap::new(),
            frames: AHashMap::new(),
            of: 0,
        }
    }

    /// Numbers of stacks are those of these tables from now on.
    pub(super) fn begin(&mut self, tables: &StackTables) {
        let of = std::ptr::from_ref(tables).addr();
        if self.of != of {
            self.of = of;
            self.stacks.clear();
            self.frames.clear();
        }
    }

    /// The tables, and how many stacks were cut.
    pub(super) fn finish(self) -> (ProfilesDictionary, u64) {
        (self.tables, self.n_cut)
    }

    fn string(&mut self, text: &str) -> i32 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        self.tables.string_table.push(text.to_owned());
        let number = last(self.tables.string_table.len());
        self.strings.insert(text.to_owned(), number);
        number
    }

    pub(super) fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            type_strindex: self.string(kind),
            unit_strindex: self.string(unit),
        }
    }

    pub(super) fn attribute(&mut self, key: &str, value: impl Into<AnyValue>) -> i32 {
        let key_strindex = self.string(key);
        let value: AnyValue = value.into();
        let plain = match &value.value {
            Some(any_value::Value::Text(text)) => Ok(text.clone()),
            Some(any_value::Value::Int(number)) => Err(*number),
            _ => return 0,
        };
        let table = &mut self.tables.attribute_table;
        let number = self.attributes.entry((key_strindex, plain));
        *number.or_insert_with(|| {
            table.push(KeyValueAndUnit {
                key_strindex,
                value: Some(value),
                unit_strindex: 0,
            });
            last(table.len())
        })
    }

    /// A stack, its innermost frame first.
    pub(super) fn stack(&mut self, stack: StackId, of: &StackTables) -> i32 {
        if stack == StackId::EMPTY {
            return 0;
        }
        if let Some(known) = self.stacks.get(&stack) {
            return *known;
        }
        let mut frames = of.frames_of(stack);
        let max_depth = self.max_depth;
        let places = frames.by_ref().take(max_depth);
        let location_indices = places.map(|frame| self.location(frame, of)).collect();
        self.n_cut += u64::from(frames.next().is_some());
        self.tables.stack_table.push(Stack { location_indices });
        let number = last(self.tables.stack_table.len());
        self.stacks.insert(stack, number);
        number
    }

    fn location(&mut self, id: FrameId, of: &StackTables) -> i32 {
        if let Some(known) = self.frames.get(&id) {
            return *known;
        }
        let Some(frame) = of.frame(id).copied() else {
            return 0;
        };
        let name = names::of_frame(of, &frame, "", Suffixes::default());
        let function_index = self.function(&name);
        let mapping_index = match frame.module {
            Some(module) => self.mapping(of.name(module)),
            None => 0,
        };
        let kind = match frame.kind {
            CodeKind::Kernel => Some(KERNEL),
            CodeKind::User => Some(NATIVE),
            CodeKind::Unknown => None,
        };
        let attribute_indices = kind.map(|kind| self.attribute(FRAME_TYPE, kind));
        self.tables.location_table.push(Location {
            mapping_index,
            address: frame.address,
            lines: vec![Line { function_index }],
            attribute_indices: attribute_indices.into_iter().collect(),
        });
        let number = last(self.tables.location_table.len());
        self.frames.insert(id, number);
        number
    }

    fn function(&mut self, name: &str) -> i32 {
        let name_strindex = self.string(name);
        let table = &mut self.tables.function_table;
        *self.functions.entry(name_strindex).or_insert_with(|| {
            table.push(Function { name_strindex });
            last(table.len())
        })
    }

    fn mapping(&mut self, file: &str) -> i32 {
        let filename_strindex = self.string(file);
        let table = &mut self.tables.mapping_table;
        *self.mappings.entry(filename_strindex).or_insert_with(|| {
            table.push(Mapping { filename_strindex });
            last(table.len())
        })
    }
}

/// The number of the last entry. Tables of a recording have at most 16 million.
fn last(len: usize) -> i32 {
    i32::try_from(len - 1).expect("fewer than two thousand million entries")
}
