//! Seals a closed log on a thread of its own, so that the writer need not wait.
//!
//! Until the sealed segment has its name, the log stays: a kill at any moment leaves one of
//! the two whole, and both for a moment.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use sexton_model::moment::Moment;

use super::open;
use crate::error::StoreError;
use crate::ledger::{Segment, Shared};
use crate::seal::{Sealer, WallOffset};
use crate::wal::{self, Log};

/// The one closed log that is being sealed, if any is.
#[derive(Debug)]
pub(super) struct Sealing {
    dir: PathBuf,
    ledger: Shared,
    wall: WallOffset,
    /// Of the closed log.
    first: Option<Moment>,
    worker: Option<JoinHandle<(WallOffset, Result<(), StoreError>)>>,
}

impl Sealing {
    pub(super) fn new(dir: &Path, ledger: &Shared) -> Self {
        Self {
            dir: dir.to_owned(),
            ledger: ledger.clone(),
            wall: WallOffset::default(),
            first: None,
            worker: None,
        }
    }

    /// The first moment of the closed log.
    pub(super) fn first(&self) -> Option<Moment> {
        self.first
    }

    /// Begins to seal the closed log. Where no thread can be had, `wait` does it.
    pub(super) fn begin(&mut self, first: Option<Moment>) {
        self.first = first;
        let (dir, ledger, mut wall) = (self.dir.clone(), self.ledger.clone(), self.wall);
        let seal = move || {
            let sealed = seal(&dir, &ledger, &mut wall);
            (wall, sealed)
        };
        let named = thread::Builder::new().name("seal".into());
        self.worker = named.spawn(seal).ok();
    }

    /// Waits until no closed log is left. One that could not be sealed is tried once more:
    /// meanwhile there may be room.
    pub(super) fn wait(&mut self) -> Result<(), StoreError> {
        if let Some(Ok((wall, Ok(())))) = self.worker.take().map(JoinHandle::join) {
            self.wall = wall;
        }
        seal(&self.dir, &self.ledger, &mut self.wall)?;
        self.first = None;
        Ok(())
    }
}

impl Drop for Sealing {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// Seals the closed log, if there is one.
fn seal(dir: &Path, ledger: &Shared, wall: &mut WallOffset) -> Result<(), StoreError> {
    let path = closed(dir);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io("open", &path)(error)),
    };
    let log = Log::scan(file).map_err(StoreError::io("read", &path))?;
    let last = ledger
        .lock()
        .segments
        .last()
        .map_or(0, |last| last.sequence);
    if let Some(log) = log
        && log.sequence > last
        && let Some((from_ns, to_ns)) = log.span_ns()
    {
        let segment = Segment {
            sequence: log.sequence,
            from_ns,
            to_ns,
            bytes: 0,
        };
        seal_log(log, dir, ledger, wall, segment)?;
    }
    remove(dir, ledger)
}

fn seal_log(
    log: Log,
    dir: &Path,
    ledger: &Shared,
    wall: &mut WallOffset,
    mut segment: Segment,
) -> Result<(), StoreError> {
    let tmp = dir.join(open::SEALING_TMP);
    let mut wall_after = *wall;
    let sealed = write(log, &tmp, ledger, &mut wall_after);
    // What is in the file is what was counted.
    segment.bytes = fs::metadata(&tmp).map_or(0, |file| file.len());
    let path = ledger.lock().path(&segment);
    let named = sealed.and_then(|()| open::rename(&tmp, &path));
    let mut ledger = ledger.lock();
    ledger.forget(segment.bytes);
    match named {
        Ok(()) => {
            *wall = wall_after;
            ledger.segments.push(segment);
            Ok(())
        }
        Err(error) => {
            let _ = fs::remove_file(&tmp);
            Err(error)
        }
    }
}

fn write(
    mut log: Log,
    tmp: &Path,
    ledger: &Shared,
    wall: &mut WallOffset,
) -> Result<(), StoreError> {
    let file = File::create(tmp).map_err(StoreError::io("create", tmp))?;
    let mut sealer = Sealer::new(ledger, (&file, tmp), wall)?;
    for block in log.blocks.clone() {
        let rows = log.rows(&block).map_err(StoreError::io("read", tmp))?;
        sealer.block(rows)?;
    }
    sealer.finish()?;
    file.sync_all().map_err(StoreError::io("sync", tmp))
}

/// Removes the closed log: what it held is sealed.
pub(super) fn remove(dir: &Path, ledger: &Shared) -> Result<(), StoreError> {
    let path = closed(dir);
    // Held meanwhile: nobody sees a file gone that is still counted.
    let mut ledger = ledger.lock();
    let bytes = fs::metadata(&path).map_or(0, |file| file.len());
    fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
    ledger.forget(bytes);
    Ok(())
}

pub(super) fn closed(dir: &Path) -> PathBuf {
    dir.join("records").join(wal::CLOSED_FILE)
}
