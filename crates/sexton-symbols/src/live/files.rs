//! Code of program files, read once for each build and kept within bounds. No file stays
//! open: that would hold a container's disk, or a deleted file's room.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sexton_host::Host;
use sexton_host::code::{CodeFile, FileId};
use sexton_model::moment::Moment;

use super::behind::Behind;
use crate::code::{Code, Part};
use crate::debug_file::Wanted;
use crate::elf::{Headers, Limits};
use crate::source::Source;

/// All functions together; at twelve bytes each, some 700,000.
const MAX_BYTES: usize = 8 << 20;
/// Files that are known.
const MAX_FILES: usize = 1024;
/// When there is no more room all is forgotten, but not more often than this.
const FORGET_EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// The code of one build.
#[derive(Debug)]
pub(super) struct Build {
    code: Code,
    /// Of a stripped program: where its debug file is, in the root of a process that runs it.
    debug: Option<PathBuf>,
}

/// Files that are known: by what they are, and by their build.
#[derive(Debug, Default)]
pub(super) struct Files {
    by_id: HashMap<FileId, Option<Arc<Build>>>,
    by_build: HashMap<Vec<u8>, Arc<Build>>,
    bytes: usize,
    forgotten_at: Option<Moment>,
}

impl Files {
    /// The code of the file behind a mapping; `None` when it is no ELF file.
    pub(super) fn code(
        &mut self,
        host: &Host,
        behind: Behind<'_>,
        now: Moment,
    ) -> Option<Arc<Build>> {
        let file = behind.open(host)?;
        if let Some(known) = self.by_id.get(&file.id()) {
            return known.clone();
        }
        if !self.make_room(now) {
            return None;
        }
        let code = self.read(host, behind, &file);
        self.by_id.insert(file.id(), code.clone());
        code
    }

    fn read(&mut self, host: &Host, behind: Behind<'_>, file: &CodeFile) -> Option<Arc<Build>> {
        let headers = Headers::read(file)?;
        let build_id = headers.build_id(file);
        if let Some(known) = build_id.as_ref().and_then(|id| self.by_build.get(id)) {
            return Some(Arc::clone(known));
        }
        let debug = debug_file(host, behind, &headers, file);
        let parts = debug.as_ref().map(|(_, headers, file)| (headers, file));
        let parts = parts.map(|(headers, file)| (headers, file as &dyn Source));
        let code = Code::read(&headers, file, parts, Limits::LIVE);
        self.bytes += code.bytes();
        let build = Arc::new(Build {
            code,
            debug: debug.map(|(path, ..)| path),
        });
        if let Some(id) = build_id {
            self.by_build.insert(id, Arc::clone(&build));
        }
        Some(build)
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

/// The file that holds what was stripped from this one, as the process would find it.
fn debug_file(
    host: &Host,
    behind: Behind<'_>,
    headers: &Headers,
    file: &CodeFile,
) -> Option<(PathBuf, Headers, CodeFile)> {
    let wanted = Wanted::of(headers, file);
    let path = Path::new(OsStr::from_bytes(&behind.mapping.path));
    wanted.paths(path).into_iter().find_map(|path| {
        let file = behind.open_beside(host, &path)?;
        let headers = Headers::read(&file)?;
        let is_it = wanted.is_met_by(&headers, &file);
        is_it.then_some((path, headers, file))
    })
}

impl Build {
    /// The function at an offset of the file: where it begins, and its name. The file is
    /// opened again for a name that was not asked for yet.
    pub(super) fn function(
        &self,
        host: &Host,
        behind: Behind<'_>,
        offset: u64,
    ) -> Option<(u64, Arc<str>)> {
        let found = self.code.find(offset)?;
        let name = self.code.name(found, |part| {
            let debug = self.debug.as_ref().filter(|_| part == Part::Debug);
            match debug {
                Some(path) => behind.open_beside(host, path),
                None => behind.open(host),
            }
        });
        Some((found.start, name?))
    }
}
