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
use crate::sealed::{Damage, Group, Sealed, malformed, read_column};

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
        let mut samples = Vec::with_capacity(columns.times.len());
        for (i, time) in columns.times.iter().enumerate() {
            let [cpu, pid, tid] = columns.numbers.each_ref().map(|column| required(column, i));
            let at_ns = time.and_then(|time| u64::try_from(time).ok());
            let at_ns = at_ns.ok_or_else(|| malformed("a time is before the boot"))?;
            let stack = match columns.stacks[i] {
                None => StackId::EMPTY,
                Some(stack) => StackId(below(stack, n_stacks)?),
            };
            let comm = self.name(columns.comms[i].as_ref())?;
            let event = self.name(columns.events[i].as_ref())?;
            samples.push(StackSample {
                at: Moment::from_ns(at_ns),
                cpu: cpu?,
                pid: pid?,
                tid: tid?,
                comm: comm.ok_or_else(|| malformed("a name is null"))?,
                cgroup: self.name(columns.cgroups[i].as_ref())?,
                state: word(columns.states[i].as_ref(), &STATES, &CORE_STATES)?,
                event: event.ok_or_else(|| malformed("an event is null"))?,
                weight: columns.weights[i].unwrap_or(1).cast_unsigned(),
                stack,
            });
        }
        Ok(samples)
    }

    fn read_frames(&mut self, rows: &dyn RowGroupReader) -> Result<(), Damage> {
        let n = self.n_rows(rows, self.tables.frames.len())?;
        let kinds = read::<ByteArrayType>(rows, &FRAMES, "kind", n)?;
        let symbols = read::<ByteArrayType>(rows, &FRAMES, "symbol", n)?;
        let modules = read::<ByteArrayType>(rows, &FRAMES, "module", n)?;
        let addresses = read::<Int64Type>(rows, &FRAMES, "address", n)?;
        let inlined = read::<Int32Type>(rows, &FRAMES, "is_inlined", n)?;
        for i in 0..n {
            let frame = Frame {
                kind: word(kinds[i].as_ref(), &KINDS, &CODE_KINDS)?,
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
        let Some(text) = text else {
            return Ok(None);
        };
        let text = text.as_utf8().map_err(malformed)?;
        if let Some(known) = self.names.get(text) {
            return Ok(Some(*known));
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
        Ok(Some(id))
    }
}

const CORE_STATES: [CoreState; 4] = [
    CoreState::User,
    CoreState::Kernel,
    CoreState::Idle,
    CoreState::Unknown,
];
const CODE_KINDS: [CodeKind; 3] = [CodeKind::Kernel, CodeKind::User, CodeKind::Unknown];

/// A row group of samples, column by column.
struct SampleColumns {
    times: Vec<Option<i64>>,
    numbers: [Vec<Option<i32>>; 3],
    comms: Vec<Option<ByteArray>>,
    cgroups: Vec<Option<ByteArray>>,
    states: Vec<Option<ByteArray>>,
    events: Vec<Option<ByteArray>>,
    weights: Vec<Option<i64>>,
    stacks: Vec<Option<i32>>,
}

impl SampleColumns {
    fn read(rows: &dyn RowGroupReader) -> Result<Self, Damage> {
        let n = usize::try_from(rows.metadata().num_rows()).map_err(malformed)?;
        let number = |name| read::<Int32Type>(rows, &SAMPLES, name, n);
        let long = |name| read::<Int64Type>(rows, &SAMPLES, name, n);
        let text = |name| read::<ByteArrayType>(rows, &SAMPLES, name, n);
        Ok(Self {
            times: long("time_ns")?,
            numbers: [number("cpu")?, number("pid")?, number("tid")?],
            comms: text("comm")?,
            cgroups: text("cgroup")?,
            states: text("state")?,
            events: text("event")?,
            weights: long("weight")?,
            stacks: number("stack")?,
        })
    }
}

fn read<T: DataType>(
    rows: &dyn RowGroupReader,
    columns: &[Column],
    name: &'static str,
    n: usize,
) -> Result<Vec<Option<T::T>>, Damage> {
    let at = columns.iter().position(|column| column.name == name);
    let at = at.ok_or_else(|| malformed(format!("it has no column {name}")))?;
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
fn word<T: Copy, const N: usize>(
    text: Option<&ByteArray>,
    words: &[&str; N],
    values: &[T; N],
) -> Result<T, Damage> {
    let text = text.ok_or_else(|| malformed("a word is null"))?;
    let at = words.iter().position(|word| word.as_bytes() == text.data());
    Ok(values[at.unwrap_or(N - 1)])
}
