//! What can go wrong with a file of the lake.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// The library could not write it.
    #[error("cannot write the report as Parquet")]
    Write(#[source] parquet::errors::ParquetError),
    /// It is larger than a report may be.
    #[error("the report has {bytes} bytes, more than the {most} that a report may have")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// What is allowed.
        most: usize,
    },
    /// The bytes are not a file of the lake.
    #[error("not a file of the lake: {0}")]
    Malformed(String),
    /// A report of a recording that never noted the wall clock has no hour.
    #[error("the recording never noted the wall clock, so its hour is unknown")]
    NoClock,
    /// Nothing was recorded.
    #[error("the recording is empty")]
    Empty,
    /// A file of the spool, or of a bucket that is a folder.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl LakeError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
