//! Builds the paths of files from the directory entries that the walk told of.

use std::sync::Arc;

use sexton_bpf::prog::memcg::Name;
use sexton_host::mounts::MountTable;
use sexton_model::census::Device;

use super::quick::QuickMap;

/// A directory entry, by its address in the kernel.
struct Entry {
    parent: u64,
    name: Box<[u8]>,
}

/// Where a file is.
pub(super) struct Place {
    /// Its path through the mount table, or inside its filesystem.
    pub(super) path: Vec<u8>,
    /// Whether a mount shows it.
    pub(super) mounted: bool,
}

/// Longer chains are not followed: entries that lead in a circle were torn.
const MAX_DEPTH: usize = 256;

/// All entries told of so far.
#[derive(Default)]
pub(super) struct Names {
    entries: QuickMap<u64, Entry>,
    /// Where directories are seen, so that each is looked up once.
    directories: QuickMap<(Device, u64), Arc<Place>>,
}

impl Names {
    /// Takes down what a batch told. An address that is told again has been
    /// renamed or reused: what was below it is looked up anew.
    pub(super) fn learn(&mut self, names: &[Name]) {
        for name in names {
            let entry = Entry {
                parent: name.parent,
                name: name.name().into(),
            };
            if self.entries.insert(name.entry, entry).is_some() {
                self.directories.clear();
            }
        }
    }

    /// Where a file is; `None` when the chain of its names is broken.
    pub(super) fn place(
        &mut self,
        mounts: &MountTable,
        device: Device,
        entry: u64,
    ) -> Option<Place> {
        let own = self.entries.get(&entry)?;
        if own.parent == entry {
            // Files without a directory (memfd, shared memory) are their own top.
            return Some(Place {
                path: own.name.to_vec(),
                mounted: false,
            });
        }
        let directory = self.directory(mounts, device, own.parent)?;
        let name = &self.entries.get(&entry)?.name;
        let mut path = directory.path.clone();
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Some(Place {
            path,
            mounted: directory.mounted,
        })
    }

    fn directory(&mut self, mounts: &MountTable, device: Device, entry: u64) -> Option<Arc<Place>> {
        if let Some(known) = self.directories.get(&(device, entry)) {
            return Some(Arc::clone(known));
        }
        let inside = self.inside(entry)?;
        let place = Arc::new(match mounts.locate(device, &inside) {
            Some(path) => Place {
                path,
                mounted: true,
            },
            None => Place {
                path: inside,
                mounted: false,
            },
        });
        self.directories.insert((device, entry), Arc::clone(&place));
        Some(place)
    }

    /// The path of a directory from the top of its filesystem.
    fn inside(&self, directory: u64) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut at = directory;
        loop {
            let entry = self.entries.get(&at)?;
            if entry.parent == at {
                break;
            }
            names.push(&entry.name);
            at = entry.parent;
            if names.len() > MAX_DEPTH {
                return None;
            }
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        Some(if path.is_empty() { b"/".to_vec() } else { path })
    }
}
