//! Begins a bundle, or goes on with one that was left, however it was left.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Record;

use super::sealing::{self, Sealing};
use super::syncing::Syncing;
use super::{Batch, BundleWriter, OpenSegment, store_gap};
use crate::SENSOR;
use crate::error::StoreError;
use crate::ledger::{Ledger, Shared, bytes_under};
use crate::lock::Lock;
use crate::meta::{self, Limits, Meta, Node};
use crate::stacks::{self, StackWriter};
use crate::wal::{self, Encoder, Log};

/// Files in the making; each is renamed once it is whole, and removed if it never was.
pub(super) const SEALING_TMP: &str = "records/sealing.tmp";
pub(super) const RAW_TMP: &str = "raw.tmp";
const WAL_TMP: &str = "records/current.wal.tmp";
const META_TMP: &str = "bundle.json.tmp";

impl BundleWriter {
    /// Begins a bundle in this folder, or goes on with the one that is there.
    ///
    /// A log that a killed writer left is cut after its last whole batch and continued;
    /// a gap says from when to when nothing was recorded.
    pub fn create(dir: &Path, limits: Limits, node: Node, now: Moment) -> Result<Self, StoreError> {
        limits.check()?;
        for folder in ["records", "raw", stacks::FOLDER].map(|name| dir.join(name)) {
            fs::create_dir_all(&folder).map_err(StoreError::io("create", &folder))?;
        }
        let lock = Lock::take(dir)?;
        let meta = Meta::read(dir)?;
        if let Some(meta) = &meta
            && meta.node.boot_id != node.boot_id
        {
            return Err(StoreError::OtherBoot {
                dir: dir.to_owned(),
                theirs: meta.node.boot_id.clone(),
                ours: node.boot_id,
            });
        }
        for tmp in [SEALING_TMP, RAW_TMP, WAL_TMP, META_TMP] {
            let _ = fs::remove_file(dir.join(tmp));
        }
        StackWriter::clean(dir)?;
        let mut ledger = Ledger::new(dir, limits.max_bytes)?;
        ledger.make_room(0)?;
        let ledger = Shared::new(ledger);
        if meta.is_none() {
            let json = Meta::new(node, now).to_json();
            write_whole(&ledger, &dir.join(META_TMP), &dir.join(meta::FILE), &json)?;
        }
        let stack_bytes = limits.segment_bytes / 2;
        let (stacks, torn_bytes) = StackWriter::open(dir, stack_bytes, &ledger)?;
        let raw = dir.join("raw");
        let sealing = Sealing::new(dir, &ledger);
        let mut writer = Self {
            dir: dir.to_owned(),
            limits,
            ledger,
            open: None,
            next_sequence: 1,
            stacks,
            batch: Batch::default(),
            raw_bytes: bytes_under(&raw).map_err(StoreError::io("list", &raw))?,
            n_kept: 0,
            n_refused: 0,
            n_samples_refused: 0,
            last_fsync: None,
            syncing: Syncing::new(),
            sealing,
            lock,
        };
        writer.recover(now)?;
        writer.speak_of_torn_stacks(now, torn_bytes)?;
        Ok(writer)
    }

    /// Writes down which events the samples of stacks have, in the order in which the
    /// recording that they come from lists them.
    pub fn name_events(&mut self, events: &[String]) -> Result<(), StoreError> {
        let Some(mut meta) = Meta::read(&self.dir)? else {
            return Ok(());
        };
        let replaced = meta.to_json().len() as u64;
        meta.events = events.to_vec();
        let (tmp, file) = (self.dir.join(META_TMP), self.dir.join(meta::FILE));
        write_whole(&self.ledger, &tmp, &file, &meta.to_json())?;
        self.ledger.lock().forget(replaced);
        Ok(())
    }

    /// Takes over what an earlier writer left.
    fn recover(&mut self, now: Moment) -> Result<(), StoreError> {
        let sealed = self.ledger.lock().segments.last().cloned();
        let sealed_sequence = sealed.as_ref().map_or(0, |last| last.sequence);
        self.next_sequence = sealed_sequence + 1;
        let closed = self.recover_closed(sealed_sequence)?;
        let path = self.log_path();
        let (was_there, log) = find_log(&path)?;
        // A log of a segment that is sealed or closed was about to be replaced.
        let log = log.filter(|log| log.sequence >= self.next_sequence);
        let last_ns = log.as_ref().and_then(Log::span_ns).map(|(_, to)| to);
        let last_ns = last_ns
            .max(closed.last_ns)
            .max(sealed.map(|last| last.to_ns));
        let n_torn = match log {
            Some(log) => self.continue_log(log, &path)?,
            None => 0,
        };
        if let Some(last_ns) = last_ns {
            let killed = was_there || closed.was_there || self.lock.was_left();
            let last = Moment::from_ns(last_ns);
            self.push(&pause(last, now, killed, n_torn + closed.n_torn))?;
            self.flush()?;
        }
        Ok(())
    }

    /// Goes on to seal a log that was closed.
    fn recover_closed(&mut self, sealed_sequence: u64) -> Result<Closed, StoreError> {
        let path = sealing::closed(&self.dir);
        let (was_there, log) = find_log(&path)?;
        let Some(log) = log.filter(|log| log.sequence > sealed_sequence) else {
            if was_there {
                sealing::remove(&self.dir, &self.ledger)?;
            }
            return Ok(Closed {
                was_there,
                ..Closed::default()
            });
        };
        self.next_sequence = log.sequence + 1;
        let span = log.span_ns();
        self.sealing
            .begin(span.map(|(from, _)| Moment::from_ns(from)));
        Ok(Closed {
            was_there,
            last_ns: span.map(|(_, to)| to),
            n_torn: log.torn.map_or(0, |torn| torn.n_records),
        })
    }

    /// Cuts what is torn; so many records were in it, as far as that can be known.
    fn continue_log(&mut self, log: Log, path: &Path) -> Result<u64, StoreError> {
        let torn = log.torn;
        let (sequence, bytes, span) = (log.sequence, log.end, log.span_ns());
        let (file, encoder) = log.into_writer();
        if let Some(torn) = torn {
            file.set_len(bytes).map_err(StoreError::io("cut", path))?;
            self.ledger.lock().forget(torn.bytes);
        }
        self.next_sequence = sequence + 1;
        self.open = Some(OpenSegment {
            file,
            path: path.to_owned(),
            bytes,
            first: span.map(|(from, _)| Moment::from_ns(from)),
            encoder,
            block_records: 0,
            block_bytes: 0,
        });
        Ok(torn.map_or(0, |torn| torn.n_records))
    }

    /// Begins a new, empty log; should there be one of a sealed segment, it is replaced.
    pub(super) fn begin_segment(&mut self) -> Result<OpenSegment, StoreError> {
        let path = self.log_path();
        let tmp = self.dir.join(WAL_TMP);
        let sequence = self.next_sequence;
        let old_bytes = fs::metadata(&path).map_or(0, |file| file.len());
        let header = wal::file_header(sequence);
        write_whole(&self.ledger, &tmp, &path, &header)?;
        self.ledger.lock().forget(old_bytes);
        self.next_sequence += 1;
        let file = OpenOptions::new().read(true).write(true).open(&path);
        Ok(OpenSegment {
            file: file.map_err(StoreError::io("open", &path))?,
            path,
            bytes: wal::HEADER_BYTES,
            first: None,
            encoder: Encoder::default(),
            block_records: 0,
            block_bytes: 0,
        })
    }

    fn log_path(&self) -> PathBuf {
        self.dir.join("records").join(wal::FILE)
    }
}

/// What an earlier writer left of a log that it had closed.
#[derive(Default)]
struct Closed {
    was_there: bool,
    last_ns: Option<u64>,
    n_torn: u64,
}

/// Whether there is such a file, and the log in it if it is one.
fn find_log(path: &Path) -> Result<(bool, Option<Log>), StoreError> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => {
            let log = Log::scan(file).map_err(StoreError::io("read", path))?;
            Ok((true, log))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((false, None)),
        Err(error) => Err(StoreError::io("open", path)(error)),
    }
}

/// Says that nothing was recorded for a time.
fn pause(last: Moment, now: Moment, killed: bool, n_torn: u64) -> Record {
    let (from, to) = (last.as_ns(), now.as_ns());
    let nothing = format!(
        "nothing was recorded for {:.1} s, from {from} to {to} ns after boot",
        now.since(last).as_secs_f64()
    );
    let gap = if killed {
        let text = format!(
            "the recorder was killed: what it saw last and had not yet written is lost, and {nothing}"
        );
        Gap::new(SENSOR, Why::Lost(n_torn), text)
    } else {
        Gap::new(SENSOR, Why::Vanished, nothing)
    };
    store_gap(last, gap)
}

/// Writes a small file so that it is there whole or not at all.
pub(crate) fn write_whole(
    ledger: &Shared,
    tmp: &Path,
    path: &Path,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let write = || {
        let file = File::create(tmp).map_err(StoreError::io("create", tmp))?;
        ledger.lock().write_at((&file, tmp), 0, bytes)?;
        let synced = file.sync_all().map_err(StoreError::io("sync", tmp));
        let named = synced.and_then(|()| rename(tmp, path));
        named.inspect_err(|_| ledger.lock().forget(bytes.len() as u64))
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(tmp);
    })
}

/// Gives a whole file its name, for good.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::io("rename", from))?;
    let folder = to.parent().unwrap_or(to);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::io("sync", folder))
}
