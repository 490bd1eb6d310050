//! The files behind the mappings of a process, which may have exited.

use std::path::Path;

use sexton_host::Host;
use sexton_host::code::{CodeFile, Mapping, open_in_root, open_mapped, open_named};

/// A mapping, and where its file can be found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind<'a> {
    /// The process that has it mapped, or had.
    pub(super) pid: u32,
    /// Processes that are likely to have the same root: its parents.
    pub(super) above: &'a [u32],
    /// The mapping.
    pub(super) mapping: &'a Mapping,
}

impl Behind<'_> {
    /// Opens the file. After the process has exited it is looked for by its name in the roots of
    /// its parents and in our own, and taken only if it is the same.
    pub(super) fn open(&self, host: &Host) -> Option<CodeFile> {
        let still_there = open_mapped(host, self.pid, self.mapping).ok();
        let is_named = !self.mapping.is_deleted;
        let by_name = || {
            self.roots()
                .find_map(|pid| open_named(host, pid, self.mapping).ok())
        };
        still_there.or_else(|| is_named.then(by_name).flatten())
    }

    /// Opens another file by its name in the root of the process, or in one of the others.
    pub(super) fn open_beside(&self, host: &Host, name: &Path) -> Option<CodeFile> {
        let roots = std::iter::once(self.pid).chain(self.roots());
        roots
            .into_iter()
            .find_map(|pid| open_in_root(host, pid, name).ok())
    }

    fn roots(&self) -> impl Iterator<Item = u32> {
        self.above.iter().copied().chain([std::process::id()])
    }
}
