//! Exit codes, the same for every command.

use std::io;
use std::process::ExitCode;

use sexton_store::StoreError;

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

/// What to do about an error, where its text cannot know.
pub fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let mut causes = error.chain();
    let of_store = causes.find_map(|cause| cause.downcast_ref::<StoreError>());
    matches!(of_store, Some(StoreError::NotABundle { .. })).then_some(
        "give what `sexton record` wrote, a folder or a .tar.zst; `sexton profile` opens files of perf",
    )
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
