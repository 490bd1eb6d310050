//! The open segment of stacks: a log of checksummed batches, framed like that of records.
//!
//! A batch is a sequence of items. Definitions hold for all that follows; what a sample says
//! by its difference to the one before begins anew in every batch.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use sexton_model::stack::{StackSample, StackTables};

use super::item::{self, Before, Item};
use crate::crc::crc32c;
use crate::wal::bytes::{Broken, Bytes};
use crate::wal::{self, FRAME_BYTES, Frame, HEADER_BYTES};

pub(crate) const FILE: &str = "current.wal";

/// No writer lets it grow so large; what it defines is in memory.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// A block of samples ends once it has so many; it becomes a row group.
pub(crate) const BLOCK_SAMPLES: usize = 1 << 15;

/// Batches that are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    offset: u64,
    end: u64,
    pub(crate) n_samples: usize,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// A log that has been read through once.
#[derive(Debug)]
pub(crate) struct StackLog {
    file: File,
    pub(crate) sequence: u64,
    /// Only those with samples.
    pub(crate) blocks: Vec<Block>,
    /// Where the whole batches end.
    pub(crate) end: u64,
    /// Bytes after that, which are no use.
    pub(crate) torn_bytes: u64,
    /// All that the log defines.
    pub(crate) tables: Arc<StackTables>,
}

impl StackLog {
    /// Reads a log through; `None` when it does not begin like one.
    pub(crate) fn scan(file: File) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES as usize];
        let length = file.metadata()?.len();
        if !(HEADER_BYTES..=MAX_LOG_BYTES).contains(&length) {
            return Ok(None);
        }
        file.read_exact_at(&mut header, 0)?;
        let Some(sequence) = wal::sequence_of(&header) else {
            return Ok(None);
        };
        let mut log = Self {
            file,
            sequence,
            blocks: Vec::new(),
            end: HEADER_BYTES,
            torn_bytes: 0,
            tables: Arc::default(),
        };
        while log.scan_batch(length)? {}
        log.torn_bytes = length - log.end;
        Ok(Some(log))
    }

    /// Whether there was another whole batch.
    fn scan_batch(&mut self, length: u64) -> io::Result<bool> {
        let Some((payload, end)) = self.batch(self.end, length)? else {
            return Ok(false);
        };
        let sizes = self.sizes();
        let mut samples = Vec::new();
        if define(&payload, Arc::make_mut(&mut self.tables), &mut samples).is_err() {
            self.forget(sizes);
            return Ok(false);
        }
        self.note(end, &samples);
        Ok(true)
    }

    fn sizes(&self) -> [usize; 3] {
        let tables = &self.tables;
        [tables.names.len(), tables.frames.len(), tables.stacks.len()]
    }

    fn forget(&mut self, [names, frames, stacks]: [usize; 3]) {
        let tables = Arc::make_mut(&mut self.tables);
        tables.names.truncate(names);
        tables.frames.truncate(frames);
        tables.stacks.truncate(stacks);
    }

    fn note(&mut self, end: u64, samples: &[StackSample]) {
        let offset = std::mem::replace(&mut self.end, end);
        if samples.is_empty() {
            return;
        }
        let last = self.blocks.last_mut();
        let open = last.filter(|block| block.n_samples < BLOCK_SAMPLES);
        let block = match open {
            Some(block) => block,
            None => {
                self.blocks.push(Block {
                    offset,
                    end,
                    n_samples: 0,
                    from_ns: u64::MAX,
                    to_ns: 0,
                });
                self.blocks.last_mut().expect("it was just pushed")
            }
        };
        block.end = end;
        block.n_samples += samples.len();
        for sample in samples {
            block.from_ns = block.from_ns.min(sample.at.as_ns());
            block.to_ns = block.to_ns.max(sample.at.as_ns());
        }
    }

    /// A whole batch and where it ends.
    fn batch(&self, at: u64, length: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
        let mut header = [0; FRAME_BYTES];
        if length - at < FRAME_BYTES as u64 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut header, at)?;
        let start = at + FRAME_BYTES as u64;
        let Some(frame) = Frame::parse(&header) else {
            return Ok(None);
        };
        let end = start + frame.length as u64;
        if end > length {
            return Ok(None);
        }
        let mut payload = vec![0; frame.length];
        self.file.read_exact_at(&mut payload, start)?;
        Ok((crc32c(0, &payload) == frame.crc).then_some((payload, end)))
    }

    /// The samples of a block, as they came.
    pub(crate) fn samples(&self, block: &Block) -> io::Result<Vec<StackSample>> {
        let changed = || io::Error::new(io::ErrorKind::InvalidData, "the log changed under us");
        let mut samples = Vec::with_capacity(block.n_samples);
        let mut at = block.offset;
        while at < block.end {
            let (payload, end) = self.batch(at, block.end)?.ok_or_else(changed)?;
            read(&payload, &self.tables, &mut samples).map_err(|Broken| changed())?;
            at = end;
        }
        Ok(samples)
    }

    /// From its first moment to its last.
    pub(crate) fn span_ns(&self) -> Option<(u64, u64)> {
        let from = self.blocks.iter().map(|block| block.from_ns).min()?;
        let to = self.blocks.iter().map(|block| block.to_ns).max()?;
        Some((from, to))
    }

    /// The log to append to.
    pub(crate) fn into_file(self) -> File {
        self.file
    }
}

/// Reads a batch that follows what `tables` know, and adds to them.
fn define(
    payload: &[u8],
    tables: &mut StackTables,
    samples: &mut Vec<StackSample>,
) -> Result<(), Broken> {
    let mut bytes = Bytes(payload);
    let mut before = Before::default();
    while !bytes.0.is_empty() {
        match item::take(&mut bytes, tables, &mut before)? {
            Item::Name(name) => tables.names.push(name),
            Item::Frame(frame) => tables.frames.push(frame),
            Item::Stack(node) => tables.stacks.push(node),
            Item::Sample(sample) => samples.push(sample),
        }
    }
    Ok(())
}

/// Reads the samples of a batch whose definitions are all in `tables` already.
fn read(
    payload: &[u8],
    tables: &StackTables,
    samples: &mut Vec<StackSample>,
) -> Result<(), Broken> {
    let mut bytes = Bytes(payload);
    let mut before = Before::default();
    while !bytes.0.is_empty() {
        if let Item::Sample(sample) = item::take(&mut bytes, tables, &mut before)? {
            samples.push(sample);
        }
    }
    Ok(())
}
