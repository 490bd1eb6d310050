//! Functions of program files, read once for each build and kept within bounds. No file
//! stays open: that would hold a container's disk, or a deleted file's room.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sexton_host::Host;
use sexton_host::code::{CodeFile, FileId, Mapping, open_in_root, open_mapped};
use sexton_model::moment::Moment;

use super::demangle;
use super::elf::{Found, Functions, Headers};

/// All functions together; at twelve bytes each, some 700,000.
const MAX_BYTES: usize = 8 << 20;
/// Names that are kept of one file.
const MAX_NAMES: usize = 8192;
/// Files that are known.
const MAX_FILES: usize = 1024;
/// When there is no more room all is forgotten, but not more often than this.
const FORGET_EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// The functions of one build.
#[derive(Debug)]
pub(super) struct Code {
    functions: Functions,
    /// Of a stripped program: where its table of symbols is, in the root of whoever runs it.
    separate: Option<PathBuf>,
    names: Mutex<HashMap<u64, Arc<str>>>,
}

/// Files that are known: by what they are, and by their build.
#[derive(Debug, Default)]
pub(super) struct Files {
    by_id: HashMap<FileId, Option<Arc<Code>>>,
    by_build: HashMap<Vec<u8>, Arc<Code>>,
    bytes: usize,
    forgotten_at: Option<Moment>,
}

impl Files {
    /// The functions of the file behind a mapping; `None` when it has no table of symbols.
    pub(super) fn code(
        &mut self,
        host: &Host,
        (pid, mapping): (u32, &Mapping),
        now: Moment,
    ) -> Option<Arc<Code>> {
        let file = open_mapped(host, pid, mapping).ok()?;
        if let Some(known) = self.by_id.get(&file.id()) {
            return known.clone();
        }
        if !self.make_room(now) {
            return None;
        }
        let code = self.read(host, pid, &file);
        self.by_id.insert(file.id(), code.clone());
        code
    }

    fn read(&mut self, host: &Host, pid: u32, file: &CodeFile) -> Option<Arc<Code>> {
        let headers = Headers::read(file)?;
        let build = headers.build_id(file);
        if let Some(known) = build.as_ref().and_then(|build| self.by_build.get(build)) {
            return Some(Arc::clone(known));
        }
        let separate = build
            .as_ref()
            .filter(|_| !headers.has_all_symbols())
            .and_then(|build| separate(host, pid, build));
        let (functions, separate) = match separate {
            Some((path, functions)) => (functions, Some(path)),
            None => (headers.functions(file)?, None),
        };
        self.bytes += functions.bytes();
        let code = Arc::new(Code {
            functions,
            separate,
            names: Mutex::default(),
        });
        if let Some(build) = build {
            self.by_build.insert(build, Arc::clone(&code));
        }
        Some(code)
    }

    /// Whether another file may be read. Programs keep what they use until they are
    /// forgotten too, so this bounds what is kept to twice the limit.
    fn make_room(&mut self, now: Moment) -> bool {
        if self.bytes < MAX_BYTES && self.by_id.len() < MAX_FILES {
            return true;
        }
        let may = self
            .forgotten_at
            .is_none_or(|last| now.since(last) >= FORGET_EVERY);
        if may {
            *self = Self {
                forgotten_at: Some(now),
                ..Self::default()
            };
        }
        may
    }
}

/// The file that debug packages install for a stripped one, found by the build.
fn separate(host: &Host, pid: u32, build: &[u8]) -> Option<(PathBuf, Functions)> {
    let hex: String = build.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, name) = hex.split_at_checked(2)?;
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{folder}/{name}.debug"));
    let file = open_in_root(host, pid, &path).ok()?;
    let headers = Headers::read(&file)?;
    let is_same = headers.build_id(&file).as_deref() == Some(build);
    let functions = headers.functions(&file).filter(|_| is_same)?;
    Some((path, functions))
}

impl Code {
    /// The function that a place in the file lies in.
    pub(super) fn find(&self, offset: u64) -> Option<Found> {
        self.functions.find(offset)
    }

    /// The name of a function. The file is opened again for one that was not asked for yet.
    pub(super) fn name(
        &self,
        host: &Host,
        (pid, mapping): (u32, &Mapping),
        found: Found,
    ) -> Option<Arc<str>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(&found.offset) {
            return Some(Arc::clone(known));
        }
        let file = match &self.separate {
            Some(path) => open_in_root(host, pid, path),
            None => open_mapped(host, pid, mapping),
        };
        let name = self.functions.name(&file.ok()?, found)?;
        let name: Arc<str> = demangle::readable(&name).into();
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        names.insert(found.offset, Arc::clone(&name));
        Some(name)
    }
}
