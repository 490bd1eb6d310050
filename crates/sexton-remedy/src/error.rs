//! Why something could not be done.

use std::io;
use std::path::PathBuf;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum RemedyError {
    /// A file could not be read, written or removed.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was to be done: `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A program could not be run.
    #[error("cannot run `{command}`")]
    Run {
        /// What was to be run.
        command: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// What was run.
        command: String,
        /// What it said.
        said: String,
    },
    /// A program did not end in time.
    #[error("`{command}` did not end within {seconds} s")]
    TimedOut {
        /// What was run.
        command: String,
        /// How long it was given.
        seconds: u64,
    },
    /// Another fix is under way.
    #[error("another `sexton fix` is at work (pid {pid}); wait for it or stop it")]
    Busy {
        /// Who holds the lock, or `unknown`.
        pid: String,
    },
    /// A file says something that we did not write.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// There is nothing to take back.
    #[error("there is nothing to take back: no undo file in {}", folder.display())]
    NothingToUndo {
        /// Where undo files are.
        folder: PathBuf,
    },
}

impl RemedyError {
    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::File {
            what,
            path: path.into(),
            source,
        }
    }

    /// The whole story in one line.
    pub fn chain(&self) -> String {
        sexton_model::text::chain(self)
    }
}
