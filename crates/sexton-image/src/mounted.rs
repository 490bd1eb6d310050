//! A root with other filesystems mounted below it. Links lead from one to another, and to
//! nothing else.

use std::io;
use std::path::{Component, Path, PathBuf};

use sexton_host::{Entry, Kind, Meta, Root};

use crate::tree::{N_LINKS_MAX, invalid};

pub(crate) struct Mounted {
    root: Box<dyn Root>,
    /// Where, and what; a later one covers an earlier one.
    mounts: Vec<(PathBuf, Box<dyn Root>)>,
}

impl Mounted {
    pub(crate) fn new(root: Box<dyn Root>) -> Self {
        Self {
            root,
            mounts: Vec::new(),
        }
    }

    pub(crate) fn mount(&mut self, place: &Path, root: Box<dyn Root>) {
        // The kernel follows links in the place of a mount.
        let place = self.resolve(place, true).unwrap_or_else(|_| place.into());
        self.mounts.push((place, root));
    }

    /// As a root; the plain one if nothing is mounted.
    pub(crate) fn into_root(self) -> Box<dyn Root> {
        match self.mounts.is_empty() {
            true => self.root,
            false => Box::new(self),
        }
    }

    /// The filesystem that a path without links is in, and the path in it.
    fn locate(&self, path: &Path) -> (&dyn Root, PathBuf) {
        let mounts = self.mounts.iter().rev();
        let deepest = mounts
            .filter(|(place, _)| path.starts_with(place))
            .max_by_key(|(place, _)| place.as_os_str().len());
        match deepest {
            Some((place, root)) => {
                let within = path.strip_prefix(place).unwrap_or(Path::new(""));
                (root.as_ref(), Path::new("/").join(within))
            }
            None => (self.root.as_ref(), path.to_owned()),
        }
    }

    fn is_mount(&self, path: &Path) -> bool {
        self.mounts.iter().any(|(place, _)| place == path)
    }

    /// The path without links. `..` of the root is the root.
    fn resolve(&self, path: &Path, follow_last: bool) -> io::Result<PathBuf> {
        let mut todo = parts(path);
        let mut here = PathBuf::from("/");
        let mut n_links = 0;
        while let Some(part) = todo.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&part);
            let is_last = todo.is_empty();
            if self.is_mount(&next) || (is_last && !follow_last) {
                here = next;
                continue;
            }
            let (root, within) = self.locate(&next);
            if root.link_meta(&within)?.kind != Kind::Link {
                here = next;
                continue;
            }
            n_links += 1;
            if n_links > N_LINKS_MAX {
                return Err(invalid("symbolic links that loop"));
            }
            let target = root.read_link(&within)?;
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            todo.extend(parts(&target));
        }
        Ok(here)
    }

    /// Asks the filesystem that a path leads into.
    fn ask<T>(
        &self,
        path: &Path,
        follow_last: bool,
        question: impl FnOnce(&dyn Root, &Path) -> io::Result<T>,
    ) -> io::Result<T> {
        let resolved = self.resolve(path, follow_last)?;
        let (root, within) = self.locate(&resolved);
        question(root, &within)
    }
}

/// The parts of a path, last one first.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let parts = path.components().rev();
    let named = parts.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| part.as_os_str().to_owned()).collect()
}

impl Root for Mounted {
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        self.ask(path, true, |root, path| root.read(path, limit_bytes))
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.ask(path, true, |root, path| root.read_at(path, offset, len))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.ask(path, true, |root, path| root.list(path))
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.ask(path, false, |root, path| root.read_link(path))
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        self.ask(path, true, |root, path| root.meta(path))
    }

    fn link_meta(&self, path: &Path) -> io::Result<Meta> {
        self.ask(path, false, |root, path| root.link_meta(path))
    }

    fn is_live(&self) -> bool {
        false
    }
}
