//! Names of code that a running program made: its `/tmp/perf-PID.map`.

use std::path::PathBuf;
use std::sync::Arc;

use sexton_host::Host;
use sexton_host::code::{FileId, open_in_root};
use sexton_host::process::Inside;

use crate::perf_map::{MAX_LIVE_BYTES, PerfMap};

/// Larger ones are not read: node and Java write a few megabytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The names of one process.
#[derive(Debug)]
pub(super) struct Made {
    id: FileId,
    map: PerfMap,
}

impl Made {
    /// Reads the map of a process, if there is one that is its own and has changed.
    pub(super) fn read(host: &Host, pid: u32, last: Option<&Self>) -> Option<Self> {
        let inside = Inside::read(host, pid)?;
        let name = PathBuf::from(format!("/tmp/perf-{}.map", inside.pid));
        let file = open_in_root(host, pid, &name).ok()?;
        // /tmp is everyone's: only the process itself, or root, may speak for it.
        let is_its_own = file.owner() == inside.user || file.owner() == 0;
        let is_new = last.is_none_or(|last| last.id != file.id());
        if !is_its_own || !is_new || file.size() > MAX_FILE_BYTES {
            return None;
        }
        let mut text = vec![0; usize::try_from(file.size()).ok()?];
        let n = file.read_at(&mut text, 0).ok()?;
        Some(Self {
            id: file.id(),
            map: PerfMap::parse(&text[..n], MAX_LIVE_BYTES),
        })
    }

    /// The code that an address lies in: its beginning and its name.
    pub(super) fn find(&self, address: u64) -> Option<(u64, Arc<str>)> {
        self.map.find(address)
    }
}
