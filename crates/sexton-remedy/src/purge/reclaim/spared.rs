//! Live neighbours whose memory the kernel leaves alone while it reclaims beside them.

use std::fs;
use std::path::{Path, PathBuf};

use sexton_host::Host;

use crate::error::RemedyError;
use crate::journal::{Change, Journal};

/// More neighbours than this are not spared one by one.
pub(super) const MOST_SPARED: usize = 4096;

/// What they have meanwhile: all that they use, also what they come to use.
const ALL: &str = "max";

/// Neighbours with `memory.low` raised, until this is dropped.
pub(super) struct Spared(Vec<(PathBuf, String)>);

impl Spared {
    /// Spares all below a cgroup. Those at the bottom too: what is protected above reaches
    /// them only where cgroup2 is mounted with `memory_recursiveprot`.
    pub(super) fn spare(
        host: &Host,
        parent: &Path,
        journal: &mut Journal,
    ) -> Result<Self, RemedyError> {
        let mut found = Vec::new();
        let mut folders = vec![parent.to_owned()];
        while let Some(folder) = folders.pop() {
            for directory in children(host, &folder) {
                let low = directory.join("memory.low");
                // One without it accounts no memory, and neither does any below.
                let Ok(before) = fs::read_to_string(&low) else {
                    continue;
                };
                if found.len() == MOST_SPARED {
                    break;
                }
                found.push((low, before.trim().to_owned()));
                folders.push(directory);
            }
        }
        let changes: Vec<Change> = found
            .iter()
            .map(|(path, value)| Change::MemoryLow {
                path: path.clone(),
                value: value.clone(),
            })
            .collect();
        journal.note_all(&changes)?;
        for (low, _) in &found {
            // One that is gone meanwhile needs no protection.
            fs::write(low, ALL).ok();
        }
        Ok(Self(found))
    }
}

fn children(host: &Host, folder: &Path) -> Vec<PathBuf> {
    let entries = host.list(folder).into_iter().flatten();
    entries
        .filter(|entry| entry.is_dir)
        .map(|entry| folder.join(&entry.name))
        .collect()
}

impl Drop for Spared {
    fn drop(&mut self) {
        for (low, before) in &self.0 {
            // A neighbour that is gone needs nothing back.
            fs::write(low, before).ok();
        }
    }
}
