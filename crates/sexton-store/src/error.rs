//! What can go wrong with a bundle.

use std::io;
use std::path::{Path, PathBuf};

/// Why a bundle could not be written or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file operation failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done: `write`, `open`.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// Another writer has the bundle.
    #[error("{} is being written by process {}", dir.display(), holder(*pid))]
    Locked {
        /// The bundle.
        dir: PathBuf,
        /// The process that has it, when its name could be read.
        pid: Option<u32>,
    },
    /// The bundle holds another boot; the times of two boots cannot be told apart.
    #[error(
        "{dir} holds records of boot {theirs}, and this is boot {ours}, whose times cannot be \
         compared with those: choose another folder, or move this one away and keep it \
         (mv {dir} {dir}.old)",
        dir = dir.display()
    )]
    OtherBoot {
        /// The bundle.
        dir: PathBuf,
        /// The boot it holds.
        theirs: String,
        /// The boot to be recorded.
        ours: String,
    },
    /// There is no bundle there, or one that makes no sense.
    #[error("{} is not a bundle: {why}", dir.display())]
    NotABundle {
        /// What was opened.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The bundle is of a newer format.
    #[error("{} is of format {found}, newer than this sexton knows ({known})", dir.display())]
    Newer {
        /// The bundle.
        dir: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that is known here.
        known: u32,
    },
    /// The limits contradict each other.
    #[error("the limits of a bundle make no sense: {0}")]
    Limits(String),
    /// Nothing is left to drop.
    #[error("no room for {wanted} bytes in {}: {why}, and no older segment is left to drop", dir.display())]
    NoRoom {
        /// The bundle.
        dir: PathBuf,
        /// How much was to be written.
        wanted: u64,
        /// The disk is full, or the bound is reached.
        why: &'static str,
    },
    /// A sealed segment could not be made.
    #[error("cannot seal {}", path.display())]
    Seal {
        /// The segment.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// A raw file has a name that would leave the bundle, or there is too much of it.
    #[error("cannot keep raw file {}: {why}", path.display())]
    Raw {
        /// The name as given.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "unknown".into(), |pid| pid.to_string())
}

impl StoreError {
    /// For `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// The error and everything behind it, in one line.
    pub fn chain(&self) -> String {
        sexton_model::text::chain(self)
    }
}
