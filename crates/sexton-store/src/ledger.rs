//! Every byte of a bundle, counted; room is made before anything is written.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sexton_model::moment::Moment;

use crate::error::StoreError;
use crate::stacks::StackSegment;

/// A sealed segment; its name says all this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) sequence: u64,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) bytes: u64,
}

impl Segment {
    pub(crate) fn file_name(&self) -> String {
        format!(
            "{:010}-{}-{}.parquet",
            self.sequence, self.from_ns, self.to_ns
        )
    }

    pub(crate) fn parse(name: &str, bytes: u64) -> Option<Self> {
        let mut parts = name.strip_suffix(".parquet")?.splitn(3, '-');
        let mut number = || parts.next()?.parse().ok();
        Some(Self {
            sequence: number()?,
            from_ns: number()?,
            to_ns: number()?,
            bytes,
        })
    }

    /// All segments of a bundle, oldest first.
    pub(crate) fn list(records: &Path) -> Result<Vec<Self>, StoreError> {
        let mut segments = Vec::new();
        let entries = fs::read_dir(records).map_err(StoreError::io("list", records))?;
        for entry in entries {
            let entry = entry.map_err(StoreError::io("list", records))?;
            // A segment may be dropped while the folder is being listed.
            let bytes = entry.metadata().map_or(0, |file| file.len());
            let name = entry.file_name();
            segments.extend(name.to_str().and_then(|name| Self::parse(name, bytes)));
        }
        segments.sort_by_key(|segment| segment.sequence);
        Ok(segments)
    }
}

/// The ledger as the writer and the thread that seals share it.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Ledger>>);

impl Shared {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Nothing that can panic is done while it is held, so it is never left half changed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a bundle holds, in bytes.
#[derive(Debug)]
pub(crate) struct Ledger {
    dir: PathBuf,
    records: PathBuf,
    max_bytes: u64,
    /// Oldest first.
    pub(crate) segments: Vec<Segment>,
    /// Those of stacks, oldest first.
    pub(crate) stacks: Vec<StackSegment>,
    /// All that is never dropped: the open segment, raw files and the small ones.
    pub(crate) kept_bytes: u64,
    /// Dropped because the disk was full, and not yet spoken of.
    pub(crate) lost_to_disk: Vec<Lost>,
}

/// A span whose records or samples were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) what: &'static str,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Ledger {
    pub(crate) fn new(dir: &Path, max_bytes: u64) -> Result<Self, StoreError> {
        let records = dir.join("records");
        let segments = Segment::list(&records)?;
        let all = bytes_under(dir).map_err(StoreError::io("list", dir))?;
        let stacks = StackSegment::list(dir)?;
        let sealed = sum(&segments, &stacks);
        Ok(Self {
            dir: dir.to_owned(),
            records,
            max_bytes,
            segments,
            stacks,
            kept_bytes: all.saturating_sub(sealed),
            lost_to_disk: Vec::new(),
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.kept_bytes + sum(&self.segments, &self.stacks)
    }

    pub(crate) fn set_max_bytes(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes;
    }

    /// Drops the oldest segments until so few bytes are left, or nothing can be dropped.
    pub(crate) fn shrink_to(&mut self, bytes: u64) -> Result<(), StoreError> {
        while self.bytes() > bytes && self.drop_oldest()?.is_some() {}
        Ok(())
    }

    /// Bytes that were counted and are gone.
    pub(crate) fn forget(&mut self, bytes: u64) {
        self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
    }

    pub(crate) fn path(&self, segment: &Segment) -> PathBuf {
        self.records.join(segment.file_name())
    }

    /// Drops the oldest segments until so many more bytes fit.
    pub(crate) fn make_room(&mut self, wanted: u64) -> Result<(), StoreError> {
        while self.bytes() + wanted > self.max_bytes {
            if self.drop_oldest()?.is_none() {
                return Err(self.no_room(wanted, "the bundle may not be larger"));
            }
        }
        Ok(())
    }

    /// Drops the segments that end before this.
    pub(crate) fn drop_before(&mut self, first: Moment) -> Result<(), StoreError> {
        while let Some(end_ns) = self.oldest_ends().into_iter().flatten().min()
            && end_ns < first.as_ns()
        {
            self.drop_oldest()?;
        }
        Ok(())
    }

    /// When the oldest segments end: of records, of stacks.
    fn oldest_ends(&self) -> [Option<u64>; 2] {
        let records = self.segments.first().map(|segment| segment.to_ns);
        let stacks = self.stacks.first().map(|segment| segment.to_ns);
        [records, stacks]
    }

    fn drop_oldest(&mut self) -> Result<Option<Lost>, StoreError> {
        let [records, stacks] = self.oldest_ends();
        if stacks.is_some_and(|stacks| records.is_none_or(|records| stacks < records)) {
            return self.drop_oldest_stacks();
        }
        let Some(oldest) = self.segments.first() else {
            return Ok(None);
        };
        let path = self.path(oldest);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("drop", &path)(error))
            }
            _ => {
                let segment = self.segments.remove(0);
                Ok(Some(Lost {
                    what: "records",
                    from_ns: segment.from_ns,
                    to_ns: segment.to_ns,
                }))
            }
        }
    }

    fn drop_oldest_stacks(&mut self) -> Result<Option<Lost>, StoreError> {
        let Some(oldest) = self.stacks.first() else {
            return Ok(None);
        };
        oldest.remove(&self.dir)?;
        let segment = self.stacks.remove(0);
        Ok(Some(Lost {
            what: "samples of stacks",
            from_ns: segment.from_ns,
            to_ns: segment.to_ns,
        }))
    }

    /// Writes and counts new bytes of a file. A full disk costs the oldest segments.
    pub(crate) fn write_at(
        &mut self,
        (file, path): (&File, &Path),
        at: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.make_room(bytes.len() as u64)?;
        loop {
            let Err(error) = file.write_all_at(bytes, at) else {
                self.kept_bytes += bytes.len() as u64;
                return Ok(());
            };
            // What was written of it is not counted, so it must not stay. A reader would
            // cut it, should this fail too.
            let _ = file.set_len(at);
            if !is_full(&error) {
                return Err(StoreError::io("write", path)(error));
            }
            match self.drop_oldest()? {
                Some(oldest) => self.lost_to_disk.push(oldest),
                None => return Err(self.no_room(bytes.len() as u64, "the disk is full")),
            }
        }
    }

    fn no_room(&self, wanted: u64, why: &'static str) -> StoreError {
        StoreError::NoRoom {
            dir: self.dir.clone(),
            wanted,
            why,
        }
    }
}

fn sum(records: &[Segment], stacks: &[StackSegment]) -> u64 {
    let records = records.iter().map(|segment| segment.bytes);
    let stacks = stacks.iter().map(|segment| segment.bytes);
    records.chain(stacks).sum()
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// The sizes of all files in a folder and below; links are not followed.
pub(crate) fn bytes_under(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let file = entry.metadata()?;
        sum += if file.is_dir() {
            bytes_under(&entry.path())?
        } else {
            file.len()
        };
    }
    Ok(sum)
}
