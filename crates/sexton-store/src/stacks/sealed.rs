//! Reads sealed segments of stacks: outside bytes, so nothing in them is believed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::reader::RowGroupReader;
use sexton_model::moment::Moment;
use sexton_model::stack::{
    CodeKind, CoreState, Frame, FrameId, NameId, StackId, StackNode, StackSample, StackTables,
};

use super::names::StackSegment;
use super::seal::{KINDS, STATES};
use super::table::{Column, FRAMES, SAMPLES, STACKS};
use super::texts::Texts;
use crate::sealed::{Damage, Group, Sealed, malformed, read_column, read_required};

/// More than a writer puts into a segment, by far.
const MAX_ROWS: usize = 1 << 22;
const MAX_NAMES_BYTES: usize = 64 << 20;

/// A sealed segment that is being read.
#[derive(Debug)]
pub(crate) struct SealedStacks {
    samples: Sealed,
    pub(crate) tables: Arc<StackTables>,
    names: HashMap<Arc<str>, NameId>,
    names_bytes: usize,
}

impl SealedStacks {
    pub(crate) fn open(dir: &Path, segment: &StackSegment) -> Result<Self, Damage> {
        let open = |table: &str, columns: &[Column]| {
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            Sealed::open_table(&segment.path(dir, table), &names)
        };
        let mut sealed = Self {
            samples: open("samples", &SAMPLES)?,
            tables: Arc::default(),
            names: HashMap::new(),
            names_bytes: 0,
        };
        let frames = open("frames", &FRAMES)?;
        for group in &frames.groups {
            frames.read(group, |rows| sealed.read_frames(rows))?;
        }
        let stacks = open("stacks", &STACKS)?;
        for group in &stacks.groups {
            stacks.read(group, |rows| sealed.read_stacks(rows))?;
        }
        Ok(sealed)
    }

    /// Its row groups of samples.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.samples.groups
    }

    /// The samples of one row group, in the order of time.
    pub(crate) fn samples(&mut self, group: &Group) -> Result<Vec<StackSample>, Damage> {
        let columns = self.samples.read(group, SampleColumns::read)?;
        let mut samples = self.samples_of(&columns)?;
        samples.sort_by_key(|sample| (sample.at, sample.cpu));
        Ok(samples)
    }

    fn samples_of(&mut self, columns: &SampleColumns) -> Result<Vec<StackSample>, Damage> {
        let n_stacks = self.tables.stacks.len();
        let comms = self.names_of(&columns.comms)?;
        let cgroups = self.names_of(&columns.cgroups)?;
        let events = self.names_of(&columns.events)?;
        let states = &columns.states;
        let words: Vec<CoreState> = states
            .words
            .iter()
            .map(|text| word(text, &STATES, &CORE_STATES))
            .collect();
        let [cpus, pids, tids] = &columns.numbers;
        let null = || malformed("a name is null");
        let mut samples = Vec::with_capacity(columns.times.len());
        for (i, time) in columns.times.iter().enumerate() {
            let at_ns = u64::try_from(*time).map_err(|_| malformed("a time is before the boot"))?;
            let stack = match columns.stacks[i] {
                None => StackId::EMPTY,
                Some(stack) => StackId(below(stack, n_stacks)?),
            };
            let cgroup = columns.cgroups.word(i);
            samples.push(StackSample {
                at: Moment::from_ns(at_ns),
                cpu: cpus[i].cast_unsigned(),
                pid: pids[i].cast_unsigned(),
                tid: tids[i].cast_unsigned(),
                comm: comms[columns.comms.word(i).ok_or_else(null)?],
                cgroup: cgroup.map(|word| cgroups[word]),
                state: words[states.word(i).ok_or_else(null)?],
                event: events[columns.events.word(i).ok_or_else(null)?],
                weight: columns.weights[i].cast_unsigned(),
                stack,
            });
        }
        Ok(samples)
    }

    /// The numbers of a column's texts.
    fn names_of(&mut self, texts: &Texts) -> Result<Vec<NameId>, Damage> {
        texts.words.iter().map(|text| self.known(text)).collect()
    }

    fn read_frames(&mut self, rows: &dyn RowGroupReader) -> Result<(), Damage> {
        let n = self.n_rows(rows, self.tables.frames.len())?;
        let kinds = Texts::read(rows, place_of(&FRAMES, "kind")?, false, n)?;
        let symbols = read::<ByteArrayType>(rows, &FRAMES, "symbol", n)?;
        let modules = read::<ByteArrayType>(rows, &FRAMES, "module", n)?;
        let addresses = read::<Int64Type>(rows, &FRAMES, "address", n)?;
        let inlined = read::<Int32Type>(rows, &FRAMES, "is_inlined", n)?;
        for i in 0..n {
            let kind = kinds.word(i).and_then(|word| kinds.words.get(word));
            let kind = kind.ok_or_else(|| malformed("a kind is null"))?;
            let frame = Frame {
                kind: word(kind, &KINDS, &CODE_KINDS),
                symbol: self.name(symbols[i].as_ref())?,
                module: self.name(modules[i].as_ref())?,
                address: addresses[i].unwrap_or(0).cast_unsigned(),
                is_inlined: inlined[i] == Some(1),
            };
            Arc::make_mut(&mut self.tables).frames.push(frame);
        }
        Ok(())
    }

    fn read_stacks(&mut self, rows: &dyn RowGroupReader) -> Result<(), Damage> {
        let n = self.n_rows(rows, self.tables.stacks.len())?;
        let callers = read::<Int32Type>(rows, &STACKS, "caller", n)?;
        let frames = read::<Int32Type>(rows, &STACKS, "frame", n)?;
        let tables = Arc::make_mut(&mut self.tables);
        for (i, caller) in callers.into_iter().enumerate() {
            let caller = match caller {
                None => StackId::EMPTY,
                Some(caller) => StackId(below(caller, tables.stacks.len())?),
            };
            let frame = FrameId(below(
                required(&frames, i)?.cast_signed(),
                tables.frames.len(),
            )?);
            tables.stacks.push(StackNode { caller, frame });
        }
        Ok(())
    }

    fn n_rows(&self, rows: &dyn RowGroupReader, so_far: usize) -> Result<usize, Damage> {
        let n = usize::try_from(rows.metadata().num_rows()).map_err(malformed)?;
        if so_far.saturating_add(n) > MAX_ROWS {
            return Err(malformed("it has more rows than any segment"));
        }
        Ok(n)
    }

    fn name(&mut self, text: Option<&ByteArray>) -> Result<Option<NameId>, Damage> {
        text.map(|text| self.known(text)).transpose()
    }

    fn known(&mut self, text: &ByteArray) -> Result<NameId, Damage> {
        let text = text.as_utf8().map_err(malformed)?;
        if let Some(known) = self.names.get(text) {
            return Ok(*known);
        }
        self.names_bytes += text.len();
        if self.names_bytes > MAX_NAMES_BYTES {
            return Err(malformed("it has more names than any segment"));
        }
        let text: Arc<str> = text.into();
        let tables = Arc::make_mut(&mut self.tables);
        let id = NameId(u32::try_from(tables.names.len()).map_err(malformed)?);
        tables.names.push(Arc::clone(&text));
        self.names.insert(text, id);
        Ok(id)
    }
}

pub(super) const CORE_STATES: [CoreState; 5] = [
    CoreState::User,
    CoreState::Kernel,
    CoreState::Idle,
    CoreState::Waiting,
    CoreState::Unknown,
];
const CODE_KINDS: [CodeKind; 3] = [CodeKind::Kernel, CodeKind::User, CodeKind::Unknown];

/// A row group of samples, column by column.
struct SampleColumns {
    times: Vec<i64>,
    numbers: [Vec<i32>; 3],
    comms: Texts,
    cgroups: Texts,
    states: Texts,
    events: Texts,
    weights: Vec<i64>,
    stacks: Vec<Option<i32>>,
}

impl SampleColumns {
    fn read(rows: &dyn RowGroupReader) -> Result<Self, Damage> {
        let n = usize::try_from(rows.metadata().num_rows()).map_err(malformed)?;
        let number = |name| read_required::<Int32Type>(rows, place_of(&SAMPLES, name)?, n);
        let long = |name| read_required::<Int64Type>(rows, place_of(&SAMPLES, name)?, n);
        let text = |name| {
            let at = place_of(&SAMPLES, name)?;
            Texts::read(rows, at, SAMPLES[at].is_nullable, n)
        };
        Ok(Self {
            times: long("time_ns")?,
            numbers: [number("cpu")?, number("pid")?, number("tid")?],
            comms: text("comm")?,
            cgroups: text("cgroup")?,
            states: text("state")?,
            events: text("event")?,
            weights: long("weight")?,
            stacks: read::<Int32Type>(rows, &SAMPLES, "stack", n)?,
        })
    }
}

/// Where a column is.
pub(super) fn place_of(columns: &[Column], name: &str) -> Result<usize, Damage> {
    let at = columns.iter().position(|column| column.name == name);
    at.ok_or_else(|| malformed(format!("it has no column {name}")))
}

fn read<T: DataType>(
    rows: &dyn RowGroupReader,
    columns: &[Column],
    name: &'static str,
    n: usize,
) -> Result<Vec<Option<T::T>>, Damage> {
    let at = place_of(columns, name)?;
    read_column::<T>(rows, at, columns[at].is_nullable, n)
}

fn required(column: &[Option<i32>], i: usize) -> Result<u32, Damage> {
    let value = column[i].ok_or_else(|| malformed("a number is null"))?;
    Ok(value.cast_unsigned())
}

fn below(number: i32, limit: usize) -> Result<u32, Damage> {
    let number = number.cast_unsigned();
    if number as usize >= limit {
        return Err(malformed("a row refers to one that is not there"));
    }
    Ok(number)
}

/// The value that a word stands for. One of a newer version is the last, unknown.
pub(super) fn word<T: Copy, const N: usize>(
    text: &ByteArray,
    words: &[&str; N],
    values: &[T; N],
) -> T {
    let at = words.iter().position(|word| word.as_bytes() == text.data());
    values[at.unwrap_or(N - 1)]
}
