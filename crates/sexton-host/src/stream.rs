//! Files that never end: what is written to them is read piece by piece, and nobody
//! waits for more.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::error::HostError;

/// A file that never ends, open at its beginning.
#[derive(Debug)]
pub struct Stream {
    file: OwnedFd,
    path: PathBuf,
}

/// What one look at a stream gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes at the start of the buffer.
    Bytes(usize),
    /// Nothing that has not been read yet.
    Nothing,
    /// What was to be read next has been overwritten. The next look gives the oldest
    /// that is left.
    Overwritten,
}

impl Stream {
    pub(crate) fn open(path: &Path) -> Result<Self, HostError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|source| HostError::Read {
                path: path.to_owned(),
                source: source.into(),
            })?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Goes back to the oldest that there is.
    pub fn rewind(&mut self) -> Result<(), HostError> {
        rustix::fs::seek(&self.file, SeekFrom::Start(0))
            .map(|_| ())
            .map_err(|error| self.failed(error))
    }

    /// Reads what comes next, without waiting for it. A device such as `/dev/kmsg`
    /// gives one record at a time and none that does not fit.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Piece, HostError> {
        loop {
            return match rustix::io::read(&self.file, &mut *buffer) {
                Ok(0) | Err(Errno::AGAIN) => Ok(Piece::Nothing),
                Ok(n) => Ok(Piece::Bytes(n)),
                Err(Errno::PIPE) => Ok(Piece::Overwritten),
                Err(Errno::INTR) => continue,
                Err(error) => Err(self.failed(error)),
            };
        }
    }

    fn failed(&self, error: Errno) -> HostError {
        HostError::Read {
            path: self.path.clone(),
            source: io::Error::from(error),
        }
    }
}
