//! The spool: reports that wait for their bucket, in a folder of the node that is laid out
//! like a bucket. An outage costs time, and no report until the spool is full.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::LakeError;
use crate::layout::{FOLDER_OF_SETS, day_of, path_of_set};
use crate::report::Report;

/// Reports that wait at most: a week, by the hour.
const MAX_REPORTS: usize = 7 * 24;
/// Their bytes at most, with their sets.
const MAX_BYTES: u64 = 16 << 20;
/// A file that is larger was not written by this crate.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Sets that are remembered as sent.
const MAX_SENT_SETS: usize = 64;

/// What came of putting a file that must not be there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is there now.
    New,
    /// It was there already.
    AlreadyThere,
}

/// What came of shipping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shipped {
    /// Reports that are in the bucket now.
    pub n_sent: usize,
    /// Of these, reports that were there already.
    pub n_already_there: usize,
}

/// Reports that wait.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    /// The day on which a set was last kept for sending: once a day is enough.
    sent_sets: BTreeMap<String, String>,
}

impl Spool {
    /// The spool in this folder, which is made when it is needed.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            sent_sets: BTreeMap::new(),
        }
    }

    /// Keeps a report, and its sets, until they are shipped. Gives the number of reports that
    /// were dropped: the oldest ones to make room, and this one if another of its path waits.
    pub fn keep(&mut self, report: &mut Report) -> Result<usize, LakeError> {
        let bytes = report.parquet()?;
        let day = day_of(report.at_us);
        if self.sent_sets.len() > MAX_SENT_SETS {
            self.sent_sets.clear();
        }
        for set in report.sets() {
            let digest = set.digest();
            if self.sent_sets.get(&digest) != Some(&day) {
                self.write(&path_of_set(&digest), &set.parquet()?)?;
                self.sent_sets.insert(digest, day.clone());
            }
        }
        let put = self.write(&report.path(), &bytes)?;
        Ok(self.bound()? + usize::from(put == Put::AlreadyThere))
    }

    /// How many reports wait.
    pub fn n_waiting(&self) -> usize {
        let files = self.files().unwrap_or_default();
        files.iter().filter(|file| file.is_report()).count()
    }

    /// Hands every file to `put`, sets before reports and the oldest first, and removes those
    /// that it has put. The first failure ends it: what is left waits for the next time.
    pub fn ship<E: From<LakeError>>(
        &self,
        mut put: impl FnMut(&str, Vec<u8>) -> Result<Put, E>,
    ) -> (Shipped, Result<(), E>) {
        let mut shipped = Shipped::default();
        let result = self.ship_all(&mut put, &mut shipped);
        (shipped, result)
    }

    fn ship_all<E: From<LakeError>>(
        &self,
        put: &mut impl FnMut(&str, Vec<u8>) -> Result<Put, E>,
        shipped: &mut Shipped,
    ) -> Result<(), E> {
        for waiting in self.files()? {
            let path = self.folder.join(&waiting.path);
            let mut bytes = Vec::new();
            File::open(&path)
                .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
                .map_err(LakeError::io("read", &path))?;
            if bytes.len() as u64 > MAX_FILE_BYTES {
                let text = format!("{} is larger than any report; remove it", path.display());
                return Err(LakeError::Malformed(text).into());
            }
            let came = put(&waiting.path, bytes)?;
            fs::remove_file(&path).map_err(LakeError::io("remove", &path))?;
            if waiting.is_report() {
                shipped.n_sent += 1;
                shipped.n_already_there += usize::from(came == Put::AlreadyThere);
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<Put, LakeError> {
        put_into_folder(&self.folder, path, bytes)
    }

    /// Sets first, then reports, the oldest first.
    fn files(&self) -> Result<Vec<Waiting>, LakeError> {
        let mut files = Vec::new();
        for folder in folders_of(&self.folder)? {
            let inside = self.folder.join(&folder);
            for entry in fs::read_dir(&inside).map_err(LakeError::io("list", &inside))? {
                let entry = entry.map_err(LakeError::io("list", &inside))?;
                let name = entry.file_name().into_string().unwrap_or_default();
                if let Some(bytes) = entry.metadata().ok().filter(|it| it.is_file())
                    && name.ends_with(".parquet")
                {
                    files.push(Waiting {
                        path: format!("{folder}/{name}"),
                        bytes: bytes.len(),
                    });
                }
            }
        }
        files.sort_by(|a, b| (a.is_report(), &a.path).cmp(&(b.is_report(), &b.path)));
        Ok(files)
    }

    /// Drops the oldest reports, and then sets, until the bounds hold.
    fn bound(&mut self) -> Result<usize, LakeError> {
        let files = self.files()?;
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let (reports, sets): (Vec<Waiting>, Vec<Waiting>) =
            files.into_iter().partition(Waiting::is_report);
        let mut n_left = reports.len();
        let mut n_dropped = 0;
        // The newest report stays in any case.
        for old in reports.iter().take(reports.len().saturating_sub(1)) {
            if n_left <= MAX_REPORTS && bytes <= MAX_BYTES {
                return Ok(n_dropped);
            }
            self.drop_file(old)?;
            bytes = bytes.saturating_sub(old.bytes);
            n_left -= 1;
            n_dropped += 1;
        }
        for set in sets.iter().take_while(|_| bytes > MAX_BYTES) {
            self.drop_file(set)?;
            self.sent_sets.clear();
        }
        Ok(n_dropped)
    }

    fn drop_file(&self, file: &Waiting) -> Result<(), LakeError> {
        let path = self.folder.join(&file.path);
        fs::remove_file(&path).map_err(LakeError::io("remove", &path))
    }
}

struct Waiting {
    path: String,
    bytes: u64,
}

impl Waiting {
    fn is_report(&self) -> bool {
        !self.path.starts_with(FOLDER_OF_SETS)
    }
}

fn folders_of(spool: &Path) -> Result<Vec<String>, LakeError> {
    let entries = match fs::read_dir(spool) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(LakeError::io("list", spool))?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let name = entry.map_err(LakeError::io("list", spool))?.file_name();
        let name = name.into_string().unwrap_or_default();
        if name == FOLDER_OF_SETS || name.starts_with("day=") {
            folders.push(name);
        }
    }
    Ok(folders)
}

/// Writes a file of a bucket that is a folder, unless there is one of that name. It appears
/// as a whole or not at all.
pub fn put_into_folder(bucket: &Path, path: &str, bytes: &[u8]) -> Result<Put, LakeError> {
    let target = bucket.join(path);
    let folder = target.parent().unwrap_or(bucket);
    fs::create_dir_all(folder).map_err(LakeError::io("create", folder))?;
    if target.exists() {
        return Ok(Put::AlreadyThere);
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    // Readers take only names that end with .parquet.
    let part = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = write_part(&part, bytes).and_then(|()| link(&part, &target));
    let removed = fs::remove_file(&part);
    let put = written.map_err(LakeError::io("write", &target))?;
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(LakeError::io("remove", &part)(error))
        }
        _ => Ok(put),
    }
}

fn write_part(part: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(part)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A hard link fails where there is a file already, which no other call does so surely.
fn link(part: &Path, target: &Path) -> io::Result<Put> {
    match fs::hard_link(part, target) {
        Ok(()) => Ok(Put::New),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Put::AlreadyThere),
        // A filesystem without hard links.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Unsupported | ErrorKind::PermissionDenied
            ) && !target.exists() =>
        {
            fs::rename(part, target).map(|()| Put::New)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
