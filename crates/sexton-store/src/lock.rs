//! One writer a bundle.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::error::StoreError;

pub(crate) const FILE: &str = "lock";

/// Held for as long as the file is open, so that a killed writer holds nothing.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
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
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let read = file.read_to_string(&mut pid);
                return Err(StoreError::Locked {
                    dir: dir.to_owned(),
                    pid: read.ok().and_then(|_| pid.trim().parse().ok()),
                });
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
        }
        // The pid only helps people; a full disk must not stop the writer here.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Not only closed: a process that another thread is just starting has it open too.
        let _ = self.file.unlock();
    }
}
