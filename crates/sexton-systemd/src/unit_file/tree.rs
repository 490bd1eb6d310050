//! The files of a root, read for units: text, lists, and where links lead.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sexton_host::{Kind, Meta, Root};
use sexton_model::text::escape;

use crate::unit_file::file::{self, Assignment};

/// No unit file is near this; systemd itself stops at 1 MiB for a line.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// All of a root's settings together; a full desktop's are 2 MB. What a line becomes in
/// memory counts too, so that many short ones are no way around it.
const SETTINGS_BYTES_MAX: u64 = 32 << 20;
const LINE_BYTES: u64 = 64;

/// Settings of all units together: those of a file that many units share count for each of
/// them, because each is judged by them, and long ones count for more. A full desktop has 100,000.
const N_SETTINGS_MAX: u64 = 2_000_000;

/// Entries of all folders of units together; a full desktop has 2,000.
const N_ENTRIES_MAX: usize = 40_000;

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
    /// What is left for settings.
    room_bytes: u64,
    n_settings_left: u64,
    n_entries_left: usize,
    /// Names of drop-ins by their folder.
    drop_ins: HashMap<PathBuf, Arc<[String]>>,
    /// Files of settings that were read, by their real place.
    read: HashMap<PathBuf, Result<Arc<[Assignment]>, Unread>>,
    /// Lines at which systemd stops to read a file.
    bad_lines: HashMap<PathBuf, String>,
}

/// Why there are no settings in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not there.
    Missing,
    /// It is there and cannot be read: what it says is not known.
    Hidden,
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
            room_bytes: SETTINGS_BYTES_MAX,
            n_settings_left: N_SETTINGS_MAX,
            n_entries_left: N_ENTRIES_MAX,
            drop_ins: HashMap::new(),
            read: HashMap::new(),
            bad_lines: HashMap::new(),
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

    /// The first entries of a folder of units, and whether there are more.
    pub(crate) fn list_some(&mut self, folder: &Path, n_max: usize) -> (Vec<Entry>, bool) {
        let mut entries = self.list(folder);
        let n_max = n_max.min(self.n_entries_left);
        let is_cut = entries.len() > n_max;
        if is_cut {
            entries.truncate(n_max);
            let what = format!("only the first {n_max} of its entries are looked at");
            self.gap(folder, &io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        self.n_entries_left -= entries.len();
        (entries, is_cut)
    }

    /// The names of the drop-ins in a folder, sorted. Each folder is listed once.
    pub(crate) fn drop_ins(&mut self, folder: &Path) -> Arc<[String]> {
        if let Some(known) = self.drop_ins.get(folder) {
            return Arc::clone(known);
        }
        let entries = self.list(folder).into_iter().map(|entry| entry.name);
        let names: Arc<[String]> = entries.filter(|name| name.ends_with(".conf")).collect();
        self.drop_ins.insert(folder.to_owned(), Arc::clone(&names));
        names
    }

    /// Takes so many settings of one unit into account; `false` if there are too many of all
    /// units, which is said once.
    pub(crate) fn has_room_for(&mut self, n: usize, path: &Path) -> bool {
        match self.n_settings_left.checked_sub(n as u64) {
            Some(left) => self.n_settings_left = left,
            None if self.n_settings_left > 0 => {
                self.n_settings_left = 0;
                let what = "no unit is judged from here on: all together have too many settings";
                self.gap(path, &io::Error::new(io::ErrorKind::FileTooLarge, what));
            }
            None => {}
        }
        self.n_settings_left > 0
    }

    /// What a file of settings says. Each file is read once.
    pub(crate) fn settings(&mut self, path: &Path) -> Result<Arc<[Assignment]>, Unread> {
        let path = self.simplify(path);
        if let Some(known) = self.read.get(&path) {
            return known.clone();
        }
        let read = match self.text(&path) {
            Some(text) => {
                let (assignments, bad) = file::parse_to_bad_line(&text);
                if let Some(line) = bad {
                    self.bad_lines.insert(path.clone(), line);
                }
                Ok(assignments.into())
            }
            None if self.is_hidden(&path) => Err(Unread::Hidden),
            None => Err(Unread::Missing),
        };
        self.read.insert(path, read.clone());
        read
    }

    /// The line at which systemd stops to read a file that `settings` read.
    pub(crate) fn bad_line(&mut self, path: &Path) -> Option<&str> {
        let path = self.simplify(path);
        self.bad_lines.get(&path).map(String::as_str)
    }

    /// Whether there may be something at a path: only what is surely not there is not.
    pub(crate) fn is_hidden(&self, path: &Path) -> bool {
        use io::ErrorKind::{NotADirectory, NotFound};
        match self.root.meta(path) {
            Ok(meta) => meta.kind == Kind::File,
            Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
        }
    }

    /// The text of a file; `None` if it is not there or cannot be read.
    pub(crate) fn text(&mut self, path: &Path) -> Option<String> {
        match self.read(path, FILE_BYTES_MAX) {
            Ok(content) if self.has_room(path, &content) => {
                Some(String::from_utf8_lossy(&content).into_owned())
            }
            Ok(_) => None,
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

    /// The content of a file. On a running system a pipe would keep us waiting; roots of images
    /// open no such thing anyway.
    pub(crate) fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        if self.root.is_live() && self.root.meta(path)?.kind != Kind::File {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        self.root.read(path, limit_bytes)
    }

    /// Whether there is room for so much more; that there is none is said once.
    fn has_room(&mut self, path: &Path, content: &[u8]) -> bool {
        let n_lines = content.iter().filter(|&&b| b == b'\n').count() as u64;
        let needed = content.len() as u64 + n_lines * LINE_BYTES;
        match self.room_bytes.checked_sub(needed) {
            Some(room) => self.room_bytes = room,
            None if self.room_bytes > 0 => {
                self.room_bytes = 0;
                let what =
                    "no file of settings is read from here on: there are over 32 MiB of them";
                self.gap(path, &io::Error::new(io::ErrorKind::FileTooLarge, what));
            }
            None => {}
        }
        self.room_bytes > 0
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
