//! Makes the open segment of stacks into three Parquet files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use sexton_model::stack::{
    CodeKind, CoreState, Frame, NameId, StackId, StackNode, StackSample, StackTables,
};

use super::cells::{self, Cells};
use super::log::StackLog;
use super::names::{FOLDER, StackSegment, TABLES};
use super::order::Order;
use super::table::{self, Column, FRAMES, SAMPLES, STACKS, Values};
use crate::checked::CheckedWriter;
use crate::error::StoreError;
use crate::ledger::Shared;
use crate::writer::rename;

/// Rows of a dictionary that are written at once.
const GROUP_ROWS: usize = 1 << 16;

/// Where the files are made, before they get their names.
pub(crate) fn tmp(dir: &Path, table: &str) -> PathBuf {
    dir.join(FOLDER).join(format!("{table}.tmp"))
}

/// Seals a log. After an error nothing is left of it.
pub(crate) fn seal(ledger: &Shared, dir: &Path, log: &StackLog) -> Result<(), StoreError> {
    let Some((from_ns, to_ns)) = log.span_ns() else {
        return Ok(());
    };
    let mut segment = StackSegment {
        sequence: log.sequence,
        from_ns,
        to_ns,
        bytes: 0,
    };
    let sealed = write_all(ledger, dir, log, &segment);
    // What is in the files is what was counted.
    let paths = TABLES.map(|table| [tmp(dir, table), segment.path(dir, table)]);
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
    segment.bytes = paths.iter().flatten().map(size).sum();
    // Held meanwhile: whoever seals records at the same time must not find room that these
    // bytes still take.
    let mut ledger = ledger.lock();
    if sealed.is_err() {
        for table in TABLES {
            let _ = fs::remove_file(tmp(dir, table));
        }
        let _ = segment.remove(dir);
    }
    ledger.forget(segment.bytes);
    if sealed.is_ok() {
        ledger.stacks.push(segment);
    }
    sealed
}

fn write_all(
    ledger: &Shared,
    dir: &Path,
    log: &StackLog,
    segment: &StackSegment,
) -> Result<(), StoreError> {
    let n = segment.sequence.cast_signed();
    let span_ns = (segment.from_ns, segment.to_ns);
    let order = Order::of(&log.tables);
    write_file(ledger, dir, ("frames", &FRAMES), |file| {
        for (frames, first) in order.frames.chunks(GROUP_ROWS).zip(firsts()) {
            let text = Texts::of(&log.tables);
            file.group(span_ns, frame_columns(n, first, frames, &text))?;
        }
        Ok(())
    })?;
    write_file(ledger, dir, ("stacks", &STACKS), |file| {
        for (stacks, first) in order.stacks.chunks(GROUP_ROWS).zip(firsts()) {
            file.group(span_ns, stack_columns(n, first, stacks))?;
        }
        Ok(())
    })?;
    write_file(ledger, dir, ("samples", &SAMPLES), |file| {
        let text = Texts::of(&log.tables);
        let mut cells = Cells::default();
        for block in &log.blocks {
            let path = dir.join(FOLDER).join(super::log::FILE);
            let mut samples = log.samples(block).map_err(StoreError::io("read", &path))?;
            // Each core's clock ticks evenly, so times are near the one before.
            samples.sort_by_key(|sample| (sample.cpu, sample.at));
            file.group(
                (block.from_ns, block.to_ns),
                sample_columns(n, &samples, &text, &order),
            )?;
            samples.iter().for_each(|sample| cells.add(sample));
        }
        if let Some(text) = cells.text() {
            file.file.note(cells::KEY, text);
        }
        Ok(())
    })?;
    for table in TABLES {
        rename(&tmp(dir, table), &segment.path(dir, table))?;
    }
    Ok(())
}

/// The number of the first row of each group.
fn firsts() -> impl Iterator<Item = i32> {
    (0..).step_by(GROUP_ROWS)
}

/// A file of one table in the making.
struct Rows<'a> {
    file: CheckedWriter<'a>,
    columns: &'static [Column],
}

impl Rows<'_> {
    fn group(&mut self, span_ns: (u64, u64), values: Vec<Values>) -> Result<(), StoreError> {
        let columns = self.columns;
        self.file.group(span_ns, |group| {
            for (column, values) in columns.iter().zip(values) {
                let missing = || ParquetError::General(format!("no column {}", column.name));
                let mut writer = group.next_column()?.ok_or_else(missing)?;
                table::write(&mut writer, *column, values)?;
                writer.close()?;
            }
            Ok(())
        })
    }
}

fn write_file(
    ledger: &Shared,
    dir: &Path,
    (name, columns): (&str, &'static [Column]),
    fill: impl FnOnce(&mut Rows<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let path = tmp(dir, name);
    let file = File::create(&path).map_err(StoreError::io("create", &path))?;
    let schema = table::schema(name, columns);
    let writer = CheckedWriter::new(ledger, (&file, &path), schema, table::properties(columns))?;
    let mut rows = Rows {
        file: writer,
        columns,
    };
    fill(&mut rows)?;
    rows.file.finish()?;
    file.sync_all().map_err(StoreError::io("sync", &path))
}

/// The names as Parquet takes them, shared by all rows.
struct Texts(Vec<ByteArray>);

impl Texts {
    fn of(tables: &StackTables) -> Self {
        let text = |name: &Arc<str>| ByteArray::from(name.as_bytes().to_vec());
        Self(tables.names.iter().map(text).collect())
    }

    fn get(&self, name: NameId) -> Option<ByteArray> {
        self.0.get(name.0 as usize).cloned()
    }
}

fn numbers<T>(rows: &[T], number: impl Fn(&T) -> Option<u32>) -> Values {
    let values = rows.iter().map(|row| number(row).map(u32::cast_signed));
    Values::Numbers(values.collect())
}

fn longs<T>(rows: &[T], long: impl Fn(&T) -> u64) -> Values {
    Values::Longs(
        rows.iter()
            .map(|row| Some(long(row).cast_signed()))
            .collect(),
    )
}

fn words<T>(rows: &[T], names: &[&'static str], index: impl Fn(&T) -> usize) -> Values {
    let names: Vec<ByteArray> = names.iter().map(|name| ByteArray::from(*name)).collect();
    let values = rows.iter().map(|row| names.get(index(row)).cloned());
    Values::Texts(values.collect())
}

fn texts<T>(rows: &[T], all: &Texts, name: impl Fn(&T) -> Option<NameId>) -> Values {
    let values = rows
        .iter()
        .map(|row| name(row).and_then(|name| all.get(name)));
    Values::Texts(values.collect())
}

fn counted(n: usize, first: i32) -> Values {
    Values::Numbers((first..).take(n).map(Some).collect())
}

fn same(n: usize, value: i64) -> Values {
    Values::Longs(vec![Some(value); n])
}

fn stack_number(stack: StackId) -> Option<u32> {
    (stack != StackId::EMPTY).then_some(stack.0)
}

/// As `CoreState`s and `CodeKind`s are called in the tables.
pub(crate) const STATES: [&str; 5] = ["user", "kernel", "idle", "waiting", "unknown"];
pub(crate) const KINDS: [&str; 3] = ["kernel", "user", "unknown"];

fn sample_columns(
    segment: i64,
    samples: &[StackSample],
    names: &Texts,
    order: &Order,
) -> Vec<Values> {
    let state = |sample: &StackSample| match sample.state {
        CoreState::User => 0,
        CoreState::Kernel => 1,
        CoreState::Idle => 2,
        CoreState::Waiting => 3,
        CoreState::Unknown => 4,
    };
    vec![
        same(samples.len(), segment),
        longs(samples, |sample| sample.at.as_ns()),
        numbers(samples, |sample| Some(sample.cpu)),
        numbers(samples, |sample| Some(sample.pid)),
        numbers(samples, |sample| Some(sample.tid)),
        texts(samples, names, |sample| Some(sample.comm)),
        texts(samples, names, |sample| sample.cgroup),
        words(samples, &STATES, state),
        texts(samples, names, |sample| Some(sample.event)),
        longs(samples, |sample| sample.weight),
        numbers(samples, |sample| stack_number(order.stack(sample.stack))),
    ]
}

fn stack_columns(segment: i64, first: i32, stacks: &[StackNode]) -> Vec<Values> {
    vec![
        same(stacks.len(), segment),
        counted(stacks.len(), first),
        numbers(stacks, |node| stack_number(node.caller)),
        numbers(stacks, |node| Some(node.frame.0)),
    ]
}

fn frame_columns(segment: i64, first: i32, frames: &[Frame], names: &Texts) -> Vec<Values> {
    let kind = |frame: &Frame| match frame.kind {
        CodeKind::Kernel => 0,
        CodeKind::User => 1,
        CodeKind::Unknown => 2,
    };
    vec![
        same(frames.len(), segment),
        counted(frames.len(), first),
        words(frames, &KINDS, kind),
        texts(frames, names, |frame| frame.symbol),
        texts(frames, names, |frame| frame.module),
        longs(frames, |frame| frame.address),
        numbers(frames, |frame| Some(frame.is_inlined.into())),
    ]
}
