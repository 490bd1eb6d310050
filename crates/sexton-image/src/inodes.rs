//! Filesystems that know a file by its number: paths are walked here, alike for all.
//!
//! Nothing is read before it is asked for. Directories that were read are kept, bounded, because
//! every path leads through the same few.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::Hash;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sexton_host::{Entry, Kind, Meta, Root};

use crate::tree::{N_LINKS_MAX, invalid, split};

/// A directory with more entries is damaged or a trap.
const N_ENTRIES_MAX: usize = 1_000_000;

/// Names that are kept, of all directories together.
///
/// Chosen: 200,000 units and the links that enable them fit twice.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Inodes that are kept.
const N_KEPT_MAX: usize = 4_096;

/// What a format must be able to do.
pub(crate) trait Filesystem: Send + Sync {
    /// What a file is known by.
    type Number: Copy + Eq + Hash + Send + Sync;
    /// A file, without its content.
    type Inode: Send + Sync;

    fn root(&self) -> Self::Number;
    fn inode(&self, number: Self::Number) -> io::Result<Self::Inode>;
    fn meta(&self, inode: &Self::Inode) -> Meta;
    /// What is in a directory, without `.` and `..`.
    fn names(&self, dir: &Self::Inode) -> io::Result<Names<Self::Number>>;
    /// Where a symbolic link points to.
    fn target(&self, link: &Self::Inode) -> io::Result<Vec<u8>>;
    /// Up to `len` bytes from `offset` on; fewer only at the end.
    fn read(&self, file: &Self::Inode, offset: u64, len: usize) -> io::Result<Vec<u8>>;
}

/// The names of a directory in one allocation, sorted.
pub(crate) struct Names<N> {
    bytes: Vec<u8>,
    /// Where a name begins and how long it is, its file, and whether that is a directory, where
    /// the format says so.
    entries: Vec<(u32, u8, N, Option<bool>)>,
}

impl<N: Copy> Names<N> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, name: &[u8], number: N, is_dir: Option<bool>) -> io::Result<()> {
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
            return Err(invalid("a name that cannot be"));
        }
        if self.entries.len() >= N_ENTRIES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let len = u8::try_from(name.len()).map_err(|_| invalid("a name of over 255 bytes"))?;
        // At most a million names of 255 bytes.
        let at = u32::try_from(self.bytes.len()).map_err(io::Error::other)?;
        self.bytes.extend_from_slice(name);
        self.entries.push((at, len, number, is_dir));
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.entries
            .sort_unstable_by_key(|&(at, len, ..)| slice(&bytes, at, len));
        self.bytes = bytes;
    }

    fn find(&self, name: &[u8]) -> Option<N> {
        let found = self
            .entries
            .binary_search_by_key(&name, |&(at, len, ..)| slice(&self.bytes, at, len));
        found.ok().map(|n| self.entries[n].2)
    }

    fn kept_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<(u32, u8, N, Option<bool>)>()
    }
}

fn slice(bytes: &[u8], at: u32, len: u8) -> &[u8] {
    &bytes[at as usize..at as usize + usize::from(len)]
}

/// A filesystem as the files of a node.
pub(crate) struct InodeRoot<F: Filesystem> {
    filesystem: F,
    kept: Mutex<Kept<F>>,
}

struct Kept<F: Filesystem> {
    inodes: HashMap<F::Number, Arc<F::Inode>>,
    names: HashMap<F::Number, Arc<Names<F::Number>>>,
    bytes: usize,
}

impl<F: Filesystem> Default for Kept<F> {
    fn default() -> Self {
        Self {
            inodes: HashMap::new(),
            names: HashMap::new(),
            bytes: 0,
        }
    }
}

/// A file and the directories that lead to it.
type Place<F> = (<F as Filesystem>::Number, Arc<<F as Filesystem>::Inode>);

impl<F: Filesystem> InodeRoot<F> {
    pub(crate) fn new(filesystem: F) -> Self {
        Self {
            filesystem,
            kept: Mutex::default(),
        }
    }

    fn inode(&self, number: F::Number) -> io::Result<Arc<F::Inode>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inode) = kept().inodes.get(&number) {
            return Ok(Arc::clone(inode));
        }
        let inode = Arc::new(self.filesystem.inode(number)?);
        let mut kept = kept();
        if kept.inodes.len() >= N_KEPT_MAX {
            kept.inodes.clear();
        }
        kept.inodes.insert(number, Arc::clone(&inode));
        Ok(inode)
    }

    fn names(&self, (number, dir): &Place<F>) -> io::Result<Arc<Names<F::Number>>> {
        if self.filesystem.meta(dir).kind != Kind::Dir {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = kept().names.get(number) {
            return Ok(Arc::clone(names));
        }
        let mut names = self.filesystem.names(dir)?;
        names.sort();
        let names = Arc::new(names);
        let mut kept = kept();
        kept.bytes += names.kept_bytes();
        if kept.bytes > KEPT_BYTES_MAX {
            kept.names.clear();
            kept.bytes = names.kept_bytes();
        }
        kept.names.insert(*number, Arc::clone(&names));
        Ok(names)
    }

    /// Walks a path from the root. `..` of the root is the root.
    fn resolve(&self, path: &Path, follow_last: bool) -> io::Result<Place<F>> {
        let mut todo = split(path.as_os_str().as_bytes());
        let root = self.filesystem.root();
        let mut trail = vec![(root, self.inode(root)?)];
        let mut n_links = 0;
        while let Some(part) = todo.pop() {
            let here = trail.last().expect("the root is never taken away");
            if part == b".." {
                if trail.len() > 1 {
                    trail.pop();
                }
                continue;
            }
            let next = self.names(here)?.find(&part);
            let next = next.ok_or(io::ErrorKind::NotFound)?;
            let inode = self.inode(next)?;
            if self.filesystem.meta(&inode).kind == Kind::Link && (follow_last || !todo.is_empty())
            {
                n_links += 1;
                if n_links > N_LINKS_MAX {
                    return Err(invalid("symbolic links that loop"));
                }
                let target = self.filesystem.target(&inode)?;
                if target.first() == Some(&b'/') {
                    trail.truncate(1);
                }
                todo.extend(split(&target));
                continue;
            }
            trail.push((next, inode));
        }
        Ok(trail.pop().expect("the root is never taken away"))
    }

    fn file(&self, path: &Path) -> io::Result<(Arc<F::Inode>, u64)> {
        let (_, inode) = self.resolve(path, true)?;
        let meta = self.filesystem.meta(&inode);
        match meta.kind {
            Kind::File => Ok((inode, meta.size_bytes)),
            Kind::Dir => Err(io::ErrorKind::IsADirectory.into()),
            Kind::Link | Kind::Other => Err(invalid("not a regular file")),
        }
    }
}

impl<F: Filesystem> Root for InodeRoot<F> {
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        let (inode, size_bytes) = self.file(path)?;
        if size_bytes > limit_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let len = usize::try_from(size_bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.filesystem.read(&inode, 0, len)
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let (inode, size_bytes) = self.file(path)?;
        let left = usize::try_from(size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.filesystem.read(&inode, offset, len.min(left))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let names = self.names(&self.resolve(path, true)?)?;
        let mut entries = Vec::with_capacity(names.entries.len());
        for &(at, len, number, is_dir) in &names.entries {
            // A file whose inode is damaged is listed: what reads it will say what is wrong.
            let is_dir = is_dir.unwrap_or_else(|| {
                self.inode(number)
                    .is_ok_and(|inode| self.filesystem.meta(&inode).kind == Kind::Dir)
            });
            entries.push(Entry {
                name: OsStr::from_bytes(slice(&names.bytes, at, len)).to_owned(),
                is_dir,
            });
        }
        Ok(entries)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let (_, inode) = self.resolve(path, false)?;
        if self.filesystem.meta(&inode).kind != Kind::Link {
            return Err(invalid("not a symbolic link"));
        }
        let target = self.filesystem.target(&inode)?;
        Ok(PathBuf::from(OsString::from_vec(target)))
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        Ok(self.filesystem.meta(&self.resolve(path, true)?.1))
    }

    fn link_meta(&self, path: &Path) -> io::Result<Meta> {
        Ok(self.filesystem.meta(&self.resolve(path, false)?.1))
    }

    fn is_live(&self) -> bool {
        false
    }
}
