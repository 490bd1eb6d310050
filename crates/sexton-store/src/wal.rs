//! The open segment, `records/current.wal`: a log that is only ever appended to.
//!
//! ```text
//! file   = magic "SXTNWAL" version:u8  sequence:u64  crc:u32          (little-endian)
//! batch  = length:u32 n_records:u16 flags:u16 crc:u32 header_crc:u32  payload
//! ```
//!
//! Flag 1 begins a block, flag 2 says that fields of events have types: without it, each is text.
//!
//! A batch is whole or it is not there: it counts only when both checksums agree. What
//! follows the first batch that does not is cut. Batches form blocks (flag 1 begins one)
//! of some `BLOCK_RECORDS`; a block becomes a row group when the segment is sealed.

pub(crate) mod bytes;
mod decode;
mod encode;
mod tables;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::crc::crc32c;
use crate::row::Row;
pub(crate) use decode::Decoder;
pub(crate) use encode::{Encoder, Outgoing};

pub(crate) const FILE: &str = "current.wal";
/// A log that is complete, until it is sealed.
pub(crate) const CLOSED_FILE: &str = "sealing.wal";

const MAGIC: &[u8; 8] = b"SXTNWAL\x01";
pub(crate) const HEADER_BYTES: u64 = 20;
pub(crate) const FRAME_BYTES: usize = 16;

/// A record that would take more is not kept; that is a gap.
pub(crate) const MAX_RECORD_BYTES: usize = 16 << 10;
/// A batch is written out at this size.
pub(crate) const BATCH_BYTES: usize = 32 << 10;
/// No batch is longer.
pub(crate) const MAX_BATCH_BYTES: usize = BATCH_BYTES + MAX_RECORD_BYTES;
/// No batch has more records; each takes at least three bytes.
const MAX_BATCH_RECORDS: usize = u16::MAX as usize;
/// A block ends when it has so many records,
pub(crate) const BLOCK_RECORDS: usize = 1 << 15;
/// or so many bytes; it may exceed them by one batch.
pub(crate) const BLOCK_BYTES: u64 = 512 << 10;

const BEGINS_BLOCK: u16 = 1;
/// Fields of events have types. Older logs hold text alone.
const TYPED: u16 = 2;

/// The first bytes of a log.
pub(crate) fn file_header(sequence: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&sequence.to_le_bytes());
    let crc = crc32c(0, &header[..16]);
    header[16..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// The number in the first bytes of a log; `None` when it does not begin like one.
pub(crate) fn sequence_of(header: &[u8; HEADER_BYTES as usize]) -> Option<u64> {
    let mut sequence = [0; 8];
    sequence.copy_from_slice(&header[8..16]);
    let sequence = u64::from_le_bytes(sequence);
    (*header == file_header(sequence)).then_some(sequence)
}

/// A batch with its header; `payload` is within `MAX_BATCH_BYTES`.
pub(crate) fn frame(payload: &[u8], n_records: usize, begins_block: bool) -> Vec<u8> {
    debug_assert!(payload.len() <= MAX_BATCH_BYTES && n_records <= MAX_BATCH_RECORDS);
    let flags = if begins_block { BEGINS_BLOCK } else { 0 } | TYPED;
    let mut frame = Vec::with_capacity(FRAME_BYTES + payload.len());
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&(n_records as u16).to_le_bytes());
    frame.extend_from_slice(&flags.to_le_bytes());
    frame.extend_from_slice(&crc32c(0, payload).to_le_bytes());
    let crc = crc32c(0, &frame);
    frame.extend_from_slice(&crc.to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}

pub(crate) struct Frame {
    pub(crate) length: usize,
    n_records: u16,
    flags: u16,
    pub(crate) crc: u32,
}

impl Frame {
    pub(crate) fn parse(header: &[u8; FRAME_BYTES]) -> Option<Self> {
        let u32_at = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            u32::from_le_bytes(bytes)
        };
        let frame = Self {
            length: usize::try_from(u32_at(0)).ok()?,
            n_records: u16::from_le_bytes([header[4], header[5]]),
            flags: u16::from_le_bytes([header[6], header[7]]),
            crc: u32_at(8),
        };
        let good = crc32c(0, &header[..12]) == u32_at(12) && frame.length <= MAX_BATCH_BYTES;
        good.then_some(frame)
    }

    fn is_typed(&self) -> bool {
        self.flags & TYPED != 0
    }
}

/// A block of a log, as found by `Log::scan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    offset: u64,
    end: u64,
    mark: (usize, usize),
    pub(crate) n_records: usize,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// What follows the last whole batch of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Torn {
    /// How many bytes are no use.
    pub(crate) bytes: u64,
    /// How many records its header promises, when that much is whole.
    pub(crate) n_records: u64,
}

/// A log that has been read through once.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    pub(crate) sequence: u64,
    pub(crate) blocks: Vec<Block>,
    /// Where the whole batches end.
    pub(crate) end: u64,
    pub(crate) torn: Option<Torn>,
    decoder: Decoder,
}

impl Log {
    /// Reads a log through; `None` when it does not begin like one.
    pub(crate) fn scan(file: File) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES as usize];
        let length = file.metadata()?.len();
        if length < HEADER_BYTES {
            return Ok(None);
        }
        file.read_exact_at(&mut header, 0)?;
        let Some(sequence) = sequence_of(&header) else {
            return Ok(None);
        };
        let mut log = Self {
            file,
            sequence,
            blocks: Vec::new(),
            end: HEADER_BYTES,
            torn: None,
            decoder: Decoder::default(),
        };
        let mut rows = Vec::new();
        while log.scan_batch(length, &mut rows)? {}
        Ok(Some(log))
    }

    /// Whether there was another whole batch.
    fn scan_batch(&mut self, length: u64, rows: &mut Vec<Row>) -> io::Result<bool> {
        if self.end == length {
            return Ok(false);
        }
        let mut torn = Torn {
            bytes: length - self.end,
            n_records: 0,
        };
        let mut payload = Vec::new();
        let frame = self.read_batch(self.end, length, &mut payload)?;
        let Some(frame) = frame else {
            self.torn = Some(torn);
            return Ok(false);
        };
        torn.n_records = frame.n_records.into();
        let mark = self.decoder.mark();
        rows.clear();
        if frame.flags & BEGINS_BLOCK != 0 || self.blocks.is_empty() {
            self.decoder.begin_block();
        }
        let whole = payload.len() == frame.length
            && crc32c(0, &payload) == frame.crc
            && self.decoder.batch(&payload, frame.is_typed(), rows).is_ok()
            && rows.len() == usize::from(frame.n_records);
        if !whole {
            self.decoder.forget(mark);
            self.torn = Some(torn);
            return Ok(false);
        }
        self.note(&frame, mark, rows);
        Ok(true)
    }

    fn note(&mut self, frame: &Frame, mark: (usize, usize), rows: &[Row]) {
        let end = self.end + (FRAME_BYTES + frame.length) as u64;
        if frame.flags & BEGINS_BLOCK != 0 || self.blocks.is_empty() {
            self.blocks.push(Block {
                offset: self.end,
                end,
                mark,
                n_records: 0,
                from_ns: u64::MAX,
                to_ns: 0,
            });
        }
        self.end = end;
        let Some(block) = self.blocks.last_mut() else {
            return;
        };
        block.end = end;
        block.n_records += rows.len();
        for row in rows {
            block.from_ns = block.from_ns.min(row.at_ns);
            block.to_ns = block.to_ns.max(row.at_ns);
        }
    }

    /// A batch and as much of its payload as there is; `None` when its header is broken.
    fn read_batch(&self, at: u64, length: u64, payload: &mut Vec<u8>) -> io::Result<Option<Frame>> {
        let mut header = [0; FRAME_BYTES];
        if length - at < FRAME_BYTES as u64 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut header, at)?;
        let Some(frame) = Frame::parse(&header) else {
            return Ok(None);
        };
        let there = length - at - FRAME_BYTES as u64;
        payload.resize(frame.length.min(there as usize), 0);
        self.file.read_exact_at(payload, at + FRAME_BYTES as u64)?;
        Ok(Some(frame))
    }

    /// The rows of a block, as they came.
    pub(crate) fn rows(&mut self, block: &Block) -> io::Result<Vec<Row>> {
        let changed = || io::Error::new(io::ErrorKind::InvalidData, "the log changed under us");
        let mut rows = Vec::with_capacity(block.n_records);
        let mut payload = Vec::new();
        let mut at = block.offset;
        self.decoder.rewind(block.mark);
        while at < block.end {
            let frame = self.read_batch(at, block.end, &mut payload)?;
            let frame = frame.ok_or_else(changed)?;
            if crc32c(0, &payload) != frame.crc {
                return Err(changed());
            }
            self.decoder
                .batch(&payload, frame.is_typed(), &mut rows)
                .map_err(|_| changed())?;
            at += (FRAME_BYTES + frame.length) as u64;
        }
        Ok(rows)
    }

    /// From its first moment to its last.
    pub(crate) fn span_ns(&self) -> Option<(u64, u64)> {
        let from = self.blocks.iter().map(|block| block.from_ns).min()?;
        let to = self.blocks.iter().map(|block| block.to_ns).max()?;
        Some((from, to))
    }

    /// The log to append to, and an encoder that knows what it has taught.
    pub(crate) fn into_writer(self) -> (File, Encoder) {
        (self.file, Encoder::continuing(self.decoder.into_tables()))
    }
}
