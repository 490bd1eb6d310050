//! Why a drill could not begin or go on.

use std::io;
use std::path::{Path, PathBuf};

use sexton_host::HostError;

/// Why a drill could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    /// The machine does not offer what a drill needs.
    #[error("a drill is not possible here: {0}")]
    NotPossible(String),
    /// Another one is under way.
    #[error("a drill is under way already: {} is locked; wait for its end", .0.display())]
    Running(PathBuf),
    /// Something of the machine could not be read.
    #[error("cannot look at this machine")]
    Host(#[source] HostError),
    /// A file or a directory refused.
    #[error("cannot {doing} {}", .path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A program failed.
    #[error("{command} failed: {said}")]
    Program {
        /// What was run.
        command: String,
        /// What it said.
        said: String,
    },
    /// A part of the drill ended before its time.
    #[error("the {part} of the drill {how}")]
    Part {
        /// Which.
        part: &'static str,
        /// How it ended.
        how: String,
    },
}

impl DrillError {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }
}
