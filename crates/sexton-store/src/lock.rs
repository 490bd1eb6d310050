//! One writer a bundle.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::error::StoreError;

pub(crate) const FILE: &str = "lock";

/// Stands behind the pid of a writer from its start until it has finished.
const RECORDING: &str = "recording";

/// Held for as long as the file is open, so that a killed writer holds nothing.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    was_left: bool,
}

impl Lock {
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        let locked = file.try_lock();
        let mut said = String::new();
        let _ = (&file).take(64).read_to_string(&mut said);
        let mut words = said.split_whitespace();
        let pid = words.next().and_then(|pid| pid.parse().ok());
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let dir = dir.to_owned();
                return Err(StoreError::Locked { dir, pid });
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
        }
        // A full disk must not stop the writer here.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{} {RECORDING}", std::process::id()));
        Ok(Self {
            file,
            was_left: words.next() == Some(RECORDING),
        })
    }

    /// Whether the writer before this one never finished. Its log cannot tell: a writer that
    /// is killed right after it sealed one has none. (Earlier versions left no word here.)
    pub(crate) fn was_left(&self) -> bool {
        self.was_left
    }

    /// Says that this writer has written all it had.
    pub(crate) fn finish(&self) {
        let _ = self.file.set_len(0);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Not only closed: a process that another thread is just starting has it open too.
        let _ = self.file.unlock();
    }
}
