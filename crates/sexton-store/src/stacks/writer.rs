//! Writes the open segment of stacks, and has it sealed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_model::moment::Moment;
use sexton_model::stack::{StackSample, StackTables};

use super::intern::{Interner, Memo};
use super::item::{self, Before, Item, MAX_ITEM_BYTES};
use super::log::{FILE, StackLog};
use super::names::{FOLDER, StackSegment, TABLES, remove};
use super::seal;
use crate::error::StoreError;
use crate::ledger::Shared;
use crate::wal;
use crate::writer::write_whole;

/// The log in the making; renamed once it is whole.
const WAL_TMP: &str = "current.wal.tmp";

/// The stacks of the one writer of a bundle.
#[derive(Debug)]
pub(crate) struct StackWriter {
    dir: PathBuf,
    /// The log is sealed before it grows beyond this.
    segment_bytes: u64,
    /// None after one was sealed, until the next sample comes.
    open: Option<OpenLog>,
    next_sequence: u64,
    n_kept: u64,
    is_synced: bool,
}

#[derive(Debug)]
struct OpenLog {
    file: File,
    path: PathBuf,
    bytes: u64,
    first: Option<Moment>,
    interner: Interner,
    payload: Vec<u8>,
    n_items: usize,
    n_samples: u64,
    before: Before,
}

impl StackWriter {
    /// Takes over what an earlier writer left. Also returns how many bytes of its log were
    /// no use.
    pub(crate) fn open(
        dir: &Path,
        segment_bytes: u64,
        ledger: &Shared,
    ) -> Result<(Self, u64), StoreError> {
        let sealed = ledger.lock().stacks.last().map_or(0, |last| last.sequence);
        let mut writer = Self {
            dir: dir.to_owned(),
            segment_bytes,
            open: None,
            next_sequence: sealed + 1,
            n_kept: 0,
            is_synced: true,
        };
        let path = writer.log_path();
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((writer, 0)),
            Err(error) => return Err(StoreError::io("open", &path)(error)),
        };
        let log = StackLog::scan(file).map_err(StoreError::io("read", &path))?;
        // A log of a segment that is sealed was about to be removed.
        let Some(log) = log.filter(|log| log.sequence > sealed) else {
            writer.remove_log(ledger)?;
            return Ok((writer, 0));
        };
        let torn_bytes = log.torn_bytes;
        writer.next_sequence = log.sequence + 1;
        writer.open = Some(continued(log, path, ledger)?);
        Ok((writer, torn_bytes))
    }

    /// Removes what an earlier writer left half done. Before anything is counted.
    pub(crate) fn clean(dir: &Path) -> Result<(), StoreError> {
        for table in TABLES {
            remove(&seal::tmp(dir, table))?;
        }
        remove(&dir.join(FOLDER).join(WAL_TMP))?;
        StackSegment::remove_orphans(dir)
    }

    /// Samples that were written out.
    pub(crate) fn n_kept(&self) -> u64 {
        self.n_kept
    }

    /// The first moment of the open segment.
    pub(crate) fn first(&self) -> Option<Moment> {
        self.open.as_ref().and_then(|open| open.first)
    }

    /// Takes samples; they are kept once `flush` has returned. After an error, says how
    /// many were not taken.
    pub(crate) fn append(
        &mut self,
        ledger: &Shared,
        samples: &[StackSample],
        tables: &StackTables,
    ) -> Result<(), (StoreError, u64)> {
        let mut memo = Memo::default();
        for (i, sample) in samples.iter().enumerate() {
            let left = |error| (error, (samples.len() - i) as u64);
            if self.make_ready(ledger).map_err(left)? {
                memo = Memo::default();
            }
            let left = |error| (error, (samples.len() - i) as u64);
            self.push(ledger, (sample, tables), &mut memo)
                .map_err(left)?;
        }
        Ok(())
    }

    /// Sees to it that there is an open segment with room for a sample and all it brings.
    /// Returns whether it is a new one.
    fn make_ready(&mut self, ledger: &Shared) -> Result<bool, StoreError> {
        const BATCH: u64 = (wal::FRAME_BYTES + wal::MAX_BATCH_BYTES) as u64;
        let full = |open: &OpenLog| {
            let with_this = open.bytes + open.payload.len() as u64 + BATCH;
            open.interner.is_full() || with_this > self.segment_bytes && open.first.is_some()
        };
        if self.open.as_ref().is_some_and(full) {
            self.flush(ledger)?;
            self.seal(ledger)?;
        }
        if self.open.is_some() {
            return Ok(false);
        }
        let path = self.log_path();
        let tmp = self.dir.join(FOLDER).join(WAL_TMP);
        write_whole(ledger, &tmp, &path, &wal::file_header(self.next_sequence))?;
        self.next_sequence += 1;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(StoreError::io("open", &path))?;
        self.open = Some(OpenLog::new(file, path, wal::HEADER_BYTES));
        Ok(true)
    }

    fn push(
        &mut self,
        ledger: &Shared,
        (sample, tables): (&StackSample, &StackTables),
        memo: &mut Memo,
    ) -> Result<(), StoreError> {
        let open = self.open.as_mut().expect("a segment was made ready");
        let mut items = Vec::new();
        let sample = open
            .interner
            .sample((sample, tables), memo, &mut |item| items.push(item));
        items.push(Item::Sample(sample));
        for item in items {
            let open = self.open.as_mut().expect("it is sealed by others only");
            if open.payload.len() + MAX_ITEM_BYTES > wal::BATCH_BYTES {
                self.flush(ledger)?;
            }
            self.open.as_mut().expect("as before").put(&item);
        }
        let open = self.open.as_mut().expect("as before");
        open.first = Some(open.first.map_or(sample.at, |first| first.min(sample.at)));
        Ok(())
    }

    /// Writes out what was taken: from here on it survives a kill.
    pub(crate) fn flush(&mut self, ledger: &Shared) -> Result<(), StoreError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if open.n_items == 0 {
            return Ok(());
        }
        let frame = wal::frame(&open.payload, open.n_items, false);
        ledger
            .lock()
            .write_at((&open.file, &open.path), open.bytes, &frame)?;
        open.bytes += frame.len() as u64;
        self.n_kept += std::mem::take(&mut open.n_samples);
        self.is_synced = false;
        open.payload.clear();
        open.n_items = 0;
        open.before = Before::default();
        Ok(())
    }

    /// The log, if what was flushed to it need not survive a loss of power yet. It is up to
    /// the caller to have it synced.
    pub(crate) fn unsynced(&mut self) -> Option<(&File, &Path)> {
        let was_synced = std::mem::replace(&mut self.is_synced, true);
        let open = self.open.as_ref().filter(|_| !was_synced)?;
        Some((&open.file, &open.path))
    }

    /// Seals the open segment when its first sample is older than `age`.
    pub(crate) fn seal_if_due(
        &mut self,
        ledger: &Shared,
        now: Moment,
        age: Duration,
    ) -> Result<(), StoreError> {
        if self.first().is_some_and(|first| now.since(first) >= age) {
            self.flush(ledger)?;
            self.seal(ledger)?;
        }
        Ok(())
    }

    /// Makes the open segment into a sealed one. What was taken must be flushed.
    pub(crate) fn seal(&mut self, ledger: &Shared) -> Result<(), StoreError> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let (path, bytes, first) = (open.path, open.bytes, open.first);
        // The log knows it all, and two copies in memory are one too many.
        drop(open.interner);
        let log = StackLog::scan(open.file).map_err(StoreError::io("read", &path))?;
        let Some(log) = log else {
            return self.remove_log(ledger);
        };
        if let Err(error) = seal::seal(ledger, &self.dir, &log) {
            let interner = Interner::knowing(&log.tables);
            self.open = Some(OpenLog {
                interner,
                first,
                ..OpenLog::new(log.into_file(), path, bytes)
            });
            return Err(error);
        }
        self.remove_log(ledger)
    }

    fn remove_log(&mut self, ledger: &Shared) -> Result<(), StoreError> {
        let path = self.log_path();
        // Held meanwhile: nobody sees a file gone that is still counted.
        let mut ledger = ledger.lock();
        let bytes = fs::metadata(&path).map_or(0, |file| file.len());
        remove(&path)?;
        ledger.forget(bytes);
        Ok(())
    }

    fn log_path(&self) -> PathBuf {
        self.dir.join(FOLDER).join(FILE)
    }
}

impl OpenLog {
    fn new(file: File, path: PathBuf, bytes: u64) -> Self {
        Self {
            file,
            path,
            bytes,
            first: None,
            interner: Interner::default(),
            payload: Vec::new(),
            n_items: 0,
            n_samples: 0,
            before: Before::default(),
        }
    }

    fn put(&mut self, item: &Item) {
        item::put(&mut self.payload, item, &mut self.before);
        self.n_items += 1;
        self.n_samples += u64::from(matches!(item, Item::Sample(_)));
    }
}

/// Goes on with a log; what is torn is cut.
fn continued(log: StackLog, path: PathBuf, ledger: &Shared) -> Result<OpenLog, StoreError> {
    let (bytes, torn_bytes, span) = (log.end, log.torn_bytes, log.span_ns());
    let interner = Interner::knowing(&log.tables);
    let file = log.into_file();
    if torn_bytes > 0 {
        file.set_len(bytes).map_err(StoreError::io("cut", &path))?;
        ledger.lock().forget(torn_bytes);
    }
    Ok(OpenLog {
        interner,
        first: span.map(|(from, _)| Moment::from_ns(from)),
        ..OpenLog::new(file, path, bytes)
    })
}
