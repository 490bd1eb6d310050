//! The files of a root, read for units: text, lists, and where links lead.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use sexton_host::{Kind, Meta, Root};
use sexton_model::text::escape;

/// No unit file is near this; systemd itself stops at 1 MiB for a line.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// As many links as Linux follows.
const N_LINKS_MAX: usize = 40;

/// One entry of a folder whose name is text.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_dir: bool,
}

/// A root, and what of it could not be read.
pub struct Tree<'a> {
    root: &'a dyn Root,
    /// Where folders really are.
    folders: HashMap<PathBuf, PathBuf>,
    gaps: Vec<String>,
}

impl std::fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("gaps", &self.gaps)
            .finish_non_exhaustive()
    }
}

impl<'a> Tree<'a> {
    /// Reads through `root` only.
    pub fn new(root: &'a dyn Root) -> Self {
        Self {
            root,
            folders: HashMap::new(),
            gaps: Vec::new(),
        }
    }

    pub(crate) fn root(&self) -> &'a dyn Root {
        self.root
    }

    /// What could not be read.
    pub fn into_gaps(self) -> Vec<String> {
        self.gaps
    }

    /// Takes down that something could not be read; that it is not there is no gap.
    pub(crate) fn gap(&mut self, path: &Path, error: &io::Error) {
        use io::ErrorKind::{NotADirectory, NotFound};
        if !matches!(error.kind(), NotFound | NotADirectory) {
            let path = escape(path.as_os_str().as_encoded_bytes());
            self.gaps.push(format!("{path}: {error}"));
        }
    }

    /// The entries of a folder, sorted; none if it is not there.
    pub(crate) fn list(&mut self, folder: &Path) -> Vec<Entry> {
        match self.root.list(folder) {
            Ok(entries) => {
                let text = |entry: sexton_host::Entry| {
                    let name = entry.name.into_string().ok()?;
                    Some(Entry {
                        name,
                        is_dir: entry.is_dir,
                    })
                };
                let mut entries: Vec<Entry> = entries.into_iter().filter_map(text).collect();
                entries.sort_by(|a, b| a.name.cmp(&b.name));
                entries
            }
            Err(error) => {
                self.gap(folder, &error);
                Vec::new()
            }
        }
    }

    /// The text of a file; `None` if it is not there or cannot be read.
    pub(crate) fn text(&mut self, path: &Path) -> Option<String> {
        match self.root.read(path, FILE_BYTES_MAX) {
            Ok(content) => Some(String::from_utf8_lossy(&content).into_owned()),
            // Where a link leads to a device: an empty file for all that systemd cares.
            Err(error)
                if self
                    .root
                    .meta(path)
                    .is_ok_and(|meta| meta.kind == Kind::Other) =>
            {
                drop(error);
                None
            }
            Err(error) => {
                self.gap(path, &error);
                None
            }
        }
    }

    pub(crate) fn link(&self, path: &Path) -> io::Result<PathBuf> {
        self.root.read_link(path)
    }

    pub(crate) fn meta(&self, path: &Path) -> Option<Meta> {
        self.root.meta(path).ok()
    }

    pub(crate) fn link_meta(&self, path: &Path) -> io::Result<Meta> {
        self.root.link_meta(path)
    }

    pub(crate) fn exists(&self, path: &Path) -> bool {
        self.root.meta(path).is_ok()
    }

    /// The path with every link in its folders followed, but not the last.
    pub(crate) fn simplify(&mut self, path: &Path) -> PathBuf {
        let Some(name) = path.file_name() else {
            return self.folder(path, 0);
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        self.folder(folder, 0).join(name)
    }

    fn folder(&mut self, path: &Path, n_links: usize) -> PathBuf {
        if let Some(known) = self.folders.get(path) {
            return known.clone();
        }
        let mut real = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
                Component::ParentDir => {
                    real.pop();
                }
                Component::Normal(name) => {
                    let next = real.join(name);
                    real = match self.root.read_link(&next) {
                        // `join` of an absolute path is that path.
                        Ok(target) if n_links < N_LINKS_MAX => {
                            self.folder(&real.join(target), n_links + 1)
                        }
                        _ => next,
                    };
                }
            }
        }
        self.folders.insert(path.to_owned(), real.clone());
        real
    }
}
