//! Exit codes, the same for every command.

use std::io;
use std::process::ExitCode;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Looked, and found nothing.
    NothingFound = 0,
    /// Found something.
    Found = 1,
    /// Wrong use, or sexton itself failed.
    Failed = 2,
    /// Could not see enough to say.
    Blind = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The reader closed the pipe: that is not an error.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors
        .into_iter()
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
