//! Writes a bundle.

mod open;
mod sealing;
mod stacks;
mod syncing;

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;

use crate::SENSOR;
use crate::error::StoreError;
use crate::ledger::Shared;
use crate::lock::Lock;
use crate::meta::Limits;
use crate::stacks::StackWriter;
use crate::wal::{self, Encoder};
pub(crate) use open::{rename, write_whole};
use sealing::Sealing;
use syncing::Syncing;

/// Power may fail as well as processes; this much may then be lost, and what the disk takes
/// to write it. Each time the filesystem commits its journal, for which others wait too.
const FSYNC_EVERY: Duration = Duration::from_secs(5);

/// What has been kept so far, in records since this writer began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// So many survive the end of this process, however it comes.
    pub records: u64,
    /// So many survive the end of power.
    pub durable: u64,
}

/// What a writer leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Records that this writer has kept.
    pub records: u64,
    /// Samples of stacks that it has kept.
    pub samples: u64,
    /// The size of the bundle.
    pub bytes: u64,
    /// Its sealed segments.
    pub segments: usize,
    /// The first moment that is still there.
    pub first: Option<Moment>,
}

/// The one writer of a bundle. Times are given by the caller, in the clock of the
/// records; the writer reads no clock of its own.
#[derive(Debug)]
pub struct BundleWriter {
    dir: PathBuf,
    limits: Limits,
    ledger: Shared,
    /// None after one was closed, until the next batch begins.
    open: Option<OpenSegment>,
    next_sequence: u64,
    stacks: StackWriter,
    batch: Batch,
    raw_bytes: u64,
    n_kept: u64,
    n_refused: u64,
    n_samples_refused: u64,
    last_fsync: Option<Moment>,
    syncing: Syncing,
    sealing: Sealing,
    /// After `sealing`, which must have ended before another writer may begin.
    lock: Lock,
}

#[derive(Debug)]
struct OpenSegment {
    file: File,
    path: PathBuf,
    bytes: u64,
    first: Option<Moment>,
    encoder: Encoder,
    /// Of the block that is being written.
    block_records: usize,
    block_bytes: u64,
}

/// Records that were encoded and not yet written.
#[derive(Debug, Default)]
struct Batch {
    payload: Vec<u8>,
    n_records: usize,
    n_callers: u64,
    begins_block: bool,
}

impl BundleWriter {
    /// Takes records; they are kept once `sync` says so. After an error those that were
    /// not taken are counted, and spoken of by a gap once there is room again.
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        for (i, record) in records.iter().enumerate() {
            if let Err(error) = self.push(record) {
                self.n_refused += (records.len() - i) as u64;
                return Err(error);
            }
            self.batch.n_callers += 1;
        }
        Ok(())
    }

    /// Writes out what was appended. When it returns, all of that survives a kill at any
    /// byte; what survives a loss of power is seconds behind, and what a slow disk takes.
    pub fn sync(&mut self, now: Moment) -> Result<Acknowledged, StoreError> {
        self.flush()?;
        self.stacks.flush(&self.ledger)?;
        self.speak_of_losses(now)?;
        let due = self
            .last_fsync
            .is_none_or(|last| now.since(last) >= FSYNC_EVERY);
        if due && self.syncing.is_idle() {
            self.begin_fsync(now)?;
        }
        Ok(Acknowledged {
            records: self.n_kept,
            durable: self.syncing.n_durable()?,
        })
    }

    /// Closes the open segment when it is old enough, and drops segments that are too old.
    /// An open segment that is large enough is closed by `append` already. What is closed
    /// is sealed on a thread of its own. Returns whether a segment was closed.
    pub fn seal_if_due(&mut self, now: Moment) -> Result<bool, StoreError> {
        let max_age = u64::try_from(self.limits.max_age.as_nanos()).unwrap_or(u64::MAX);
        let oldest = now.as_ns().saturating_sub(max_age);
        self.ledger.lock().drop_before(Moment::from_ns(oldest))?;
        self.stacks
            .seal_if_due(&self.ledger, now, self.limits.segment_age)?;
        let first = self.open.as_ref().and_then(|open| open.first);
        let due = first.is_some_and(|first| now.since(first) >= self.limits.segment_age);
        if due {
            self.flush()?;
            self.close()?;
            self.speak_of_losses(now)?;
        }
        Ok(due)
    }

    /// Keeps a file that rules read as it is, once: one that is there already stays.
    /// `name` is relative, as in `etc/os-release`.
    pub fn add_raw(&mut self, name: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let refuse = |why: String| StoreError::Raw {
            path: name.to_owned(),
            why,
        };
        let inside = name
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !inside || name.as_os_str().is_empty() {
            return Err(refuse("its name leads out of the bundle".into()));
        }
        let path = self.dir.join("raw").join(name);
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let max = self.limits.max_raw_bytes();
        if self.raw_bytes + bytes.len() as u64 > max {
            return Err(refuse(format!("raw files may take {max} bytes in all")));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(StoreError::io("create", folder))?;
        }
        let whole = self.dir.join(open::RAW_TMP);
        open::write_whole(&self.ledger, &whole, &path, bytes)?;
        self.raw_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Seals what is open now, so that all that was appended is in sealed segments.
    pub fn seal_now(&mut self, now: Moment) -> Result<(), StoreError> {
        self.sync(now)?;
        self.stacks.seal(&self.ledger)?;
        self.close()?;
        self.sealing.wait()
    }

    /// Other bounds from now on: the size, of which a fraction may be open, and the age.
    pub fn set_bounds(&mut self, max_bytes: u64, max_age: Duration) {
        let least = self.limits.segment_bytes * Limits::MIN_SEGMENTS;
        self.limits.max_bytes = max_bytes.max(least);
        self.limits.max_age = max_age;
        self.ledger.lock().set_max_bytes(self.limits.max_bytes);
    }

    /// The size of the bundle.
    pub fn bytes(&self) -> u64 {
        self.ledger.lock().bytes()
    }

    /// The first moment that is still there, of what is written out.
    pub fn first(&self) -> Option<Moment> {
        let ledger = self.ledger.lock();
        let sealed = ledger.segments.first();
        let sealed = sealed.map(|segment| Moment::from_ns(segment.from_ns));
        sealed
            .or(self.sealing.first())
            .or(self.open.as_ref().and_then(|open| open.first))
    }

    /// Seals what is open and lets go of the bundle.
    pub fn finish(mut self, now: Moment) -> Result<Summary, StoreError> {
        self.sync(now)?;
        self.stacks.seal(&self.ledger)?;
        self.close()?;
        self.sealing.wait()?;
        if !self.ledger.lock().lost_to_disk.is_empty() {
            self.speak_of_losses(now)?;
            self.close()?;
            self.sealing.wait()?;
        }
        self.remove_log()?;
        self.syncing.finish()?;
        self.lock.finish();
        let segments = self.ledger.lock().segments.len();
        Ok(Summary {
            records: self.n_kept,
            samples: self.stacks.n_kept(),
            bytes: self.bytes(),
            segments,
            first: self.first(),
        })
    }

    fn push(&mut self, record: &Record) -> Result<(), StoreError> {
        let outgoing = wal::Outgoing::of(record);
        if outgoing.size_bound() > wal::MAX_RECORD_BYTES {
            return self.push(&too_long(record));
        }
        if self.batch.payload.len() >= wal::BATCH_BYTES {
            self.flush()?;
        }
        if self.batch.n_records == 0 {
            self.begin_batch()?;
        }
        let open = self.open.as_mut();
        let open =
            open.expect("a batch begins in an open segment and is written before it is sealed");
        open.encoder.record(&mut self.batch.payload, &outgoing);
        self.batch.n_records += 1;
        open.first = Some(open.first.map_or(record.at, |first| first.min(record.at)));
        Ok(())
    }

    /// Sees to it that a whole batch fits into the open segment.
    fn begin_batch(&mut self) -> Result<(), StoreError> {
        const BATCH: u64 = (wal::FRAME_BYTES + wal::MAX_BATCH_BYTES) as u64;
        let full = |open: &OpenSegment| open.bytes + BATCH > self.limits.segment_bytes;
        if self.open.as_ref().is_some_and(full) {
            self.close()?;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin_segment()?,
        };
        let open = self.open.insert(open);
        let full = open.block_records >= wal::BLOCK_RECORDS || open.block_bytes >= wal::BLOCK_BYTES;
        self.batch.begins_block = full || open.block_records == 0;
        if full {
            (open.block_records, open.block_bytes) = (0, 0);
        }
        if self.batch.begins_block {
            open.encoder.begin_block();
        }
        Ok(())
    }

    /// Writes the batch. When that fails it stays, to be written by the next call.
    fn flush(&mut self) -> Result<(), StoreError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if self.batch.n_records == 0 {
            return Ok(());
        }
        let batch = &mut self.batch;
        let frame = wal::frame(&batch.payload, batch.n_records, batch.begins_block);
        self.ledger
            .lock()
            .write_at((&open.file, &open.path), open.bytes, &frame)?;
        open.bytes += frame.len() as u64;
        open.block_bytes += frame.len() as u64;
        open.block_records += batch.n_records;
        self.n_kept += batch.n_callers;
        batch.payload.clear();
        (batch.n_records, batch.n_callers) = (0, 0);
        Ok(())
    }

    /// Has all that was written synced. One that is under way is not waited for.
    fn begin_fsync(&mut self, now: Moment) -> Result<(), StoreError> {
        self.last_fsync = Some(now);
        if let Some((file, path)) = self.stacks.unsynced() {
            self.syncing.begin(file, path, 0)?;
        }
        if let Some(open) = &self.open
            && self.syncing.n_durable()? < self.n_kept
        {
            self.syncing.begin(&open.file, &open.path, self.n_kept)?;
        }
        Ok(())
    }

    /// Makes gaps of what the disk has cost.
    fn speak_of_losses(&mut self, now: Moment) -> Result<(), StoreError> {
        let lost_to_disk = std::mem::take(&mut self.ledger.lock().lost_to_disk);
        for lost in lost_to_disk {
            let text = format!(
                "the disk is full: {} from {} to {} ns after boot were dropped to make room",
                lost.what, lost.from_ns, lost.to_ns
            );
            self.push(&store_gap(now, Gap::new(SENSOR, Why::Lost(0), text)))?;
        }
        if self.n_refused > 0 {
            let text = format!(
                "{} records until {} ns after boot dropped: buffer full",
                self.n_refused,
                now.as_ns()
            );
            let gap = Gap::new(SENSOR, Why::Lost(self.n_refused), text);
            self.push(&store_gap(now, gap))?;
            self.n_refused = 0;
        }
        self.speak_of_refused_samples(now)?;
        self.flush()
    }

    /// Closes the open segment, which is then sealed while the next one is written. The
    /// batch must be written. Waits for the one before only if that is not done yet.
    fn close(&mut self) -> Result<(), StoreError> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        if open.bytes <= wal::HEADER_BYTES {
            return Ok(());
        }
        self.sealing.wait()?;
        self.syncing.begin(&open.file, &open.path, self.n_kept)?;
        let closed = self.dir.join("records").join(wal::CLOSED_FILE);
        fs::rename(&open.path, &closed).map_err(StoreError::io("rename", &open.path))?;
        let first = open.first;
        self.open = None;
        self.sealing.begin(first);
        Ok(())
    }

    fn remove_log(&mut self) -> Result<(), StoreError> {
        let path = self.dir.join("records").join(wal::FILE);
        let bytes = fs::metadata(&path).map_or(0, |file| file.len());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io("remove", &path)(error));
            }
            _ => {}
        }
        self.ledger.lock().forget(bytes);
        self.open = None;
        Ok(())
    }
}

fn store_gap(at: Moment, gap: Gap) -> Record {
    Record {
        at,
        sensor: SENSOR.into(),
        subject: Subject::node(),
        body: Body::Gap(Box::new(gap)),
    }
}

fn too_long(record: &Record) -> Record {
    let sensor: String = record.sensor.chars().take(64).collect();
    let what = record.fact().map_or("a gap", |fact| fact.name);
    let text = format!(
        "a record of sensor {sensor} about {what} is longer than {} bytes and was not kept",
        wal::MAX_RECORD_BYTES
    );
    store_gap(record.at, Gap::new(SENSOR, Why::Malformed, text))
}
