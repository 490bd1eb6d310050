//! Names of what a recording of perf tells of: files of this machine, or of a copy of
//! another's, that are what was recorded.
//!
//! A path is no proof: programs are upgraded while they run. A file names functions only if
//! its build-id is the recorded one, or, where the recording has none, its inode. What was
//! refused is kept, so that it can be said.

mod kernel;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ahash::AHashMap;
use sexton_host::Host;
use sexton_host::code::CodeFile;

pub use kernel::Kernel;

use crate::code::{Code, Part};
use crate::debug_file::{Wanted, hex_parts};
use crate::elf::{Headers, Limits};
use crate::perf_map::PerfMap;
use crate::source::{self, Source};
use crate::unwinding::Tables;
use crate::vdso::{self, Vdso};

/// A map of a run-time compiler above this is not read, nor a kallsyms.
const MAX_TEXT: u64 = 256 << 20;

/// What the kernel puts behind the path of a file whose name is gone.
const DELETED: &str = " (deleted)";

/// A file as a recording knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recording<'a> {
    /// Its path.
    pub path: &'a str,
    /// What identifies its contents.
    pub build_id: Option<&'a [u8]>,
    /// Its number in its file system.
    pub inode: Option<u64>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What it is called.
    pub name: Arc<str>,
    /// Where it begins, counted as what was asked for.
    pub start: u64,
}

/// Why a file that is there names no functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It has another build-id.
    OtherBuild,
    /// It has another inode.
    OtherInode,
    /// Its name was gone when it was recorded, and the recording has no build-id.
    Deleted,
    /// The recording has neither build-id nor inode.
    NoIdentity,
    /// The recording has no build-id of the vdso, which every kernel has of its own.
    UnknownVdso,
}

/// Knows names from files.
#[derive(Debug)]
pub struct Recorded {
    root: PathBuf,
    /// The reader says that files below the root are those that were recorded.
    is_vouched: bool,
    home: Option<PathBuf>,
    /// By path; a path may have held several builds.
    builds: AHashMap<String, Vec<Build>>,
    made: AHashMap<u32, Option<PerfMap>>,
    vdso: Option<Option<Vdso>>,
    has_refused_vdso: bool,
    refused: Vec<(String, Refusal)>,
}

/// One build of a file.
#[derive(Debug)]
struct Build {
    build_id: Option<Vec<u8>>,
    inode: Option<u64>,
    opened: Option<Opened>,
}

/// Its files stay open: the reader waits, and holds nothing up.
#[derive(Debug)]
struct Opened {
    code: Code,
    own: CodeFile,
    debug: Option<CodeFile>,
}

impl Recorded {
    /// Looks for files below `root`; naming one vouches for what is there. `home` is
    /// where perf keeps copies of files.
    pub fn new(root: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        Self {
            is_vouched: root.is_some(),
            root: root.unwrap_or_else(|| PathBuf::from("/")),
            home,
            builds: AHashMap::new(),
            made: AHashMap::new(),
            vdso: None,
            has_refused_vdso: false,
            refused: Vec::new(),
        }
    }

    /// Files that were not used since this was last asked.
    pub fn take_refused(&mut self) -> Vec<(String, Refusal)> {
        std::mem::take(&mut self.refused)
    }

    /// The function at an offset of a file.
    pub fn function(&mut self, file: Recording<'_>, offset: u64) -> Option<Named> {
        if file.path == vdso::NAME {
            return self.in_vdso(file, offset);
        }
        let opened = self.opened(file)?;
        let found = opened.code.find(offset)?;
        let name = opened.code.name(found, |part| match part {
            Part::Own => Some(&opened.own),
            Part::Debug => opened.debug.as_ref(),
        })?;
        Some(Named {
            name,
            start: found.start,
        })
    }

    /// What is needed to unwind stacks through a file.
    pub fn unwind_tables(&mut self, file: Recording<'_>) -> Option<Tables> {
        if file.path == vdso::NAME {
            return Tables::read(self.same_vdso(file)?.image());
        }
        Tables::read(&self.opened(file)?.own)
    }

    /// The file, if it is there and is the recorded one.
    fn opened(&mut self, file: Recording<'_>) -> Option<&Opened> {
        let is_it =
            |build: &Build| build.build_id.as_deref() == file.build_id && build.inode == file.inode;
        let builds = self.builds.get(file.path);
        let at = match builds.and_then(|builds| builds.iter().position(is_it)) {
            Some(at) => at,
            None => self.add(file),
        };
        self.builds.get(file.path)?.get(at)?.opened.as_ref()
    }

    /// The vdso, if it is that of the recording: every kernel has its own.
    fn same_vdso(&mut self, file: Recording<'_>) -> Option<&Vdso> {
        let ours = || Vdso::read(&Host::live().ok()?);
        let vdso = self.vdso.get_or_insert_with(ours).as_ref()?;
        let refusal = match file.build_id {
            None => Some(Refusal::UnknownVdso),
            Some(id) => (vdso.build_id() != Some(id)).then_some(Refusal::OtherBuild),
        };
        let Some(refusal) = refusal else {
            return self.vdso.as_ref()?.as_ref();
        };
        if !self.has_refused_vdso {
            self.has_refused_vdso = true;
            self.refused.push((file.path.to_owned(), refusal));
        }
        None
    }

    fn in_vdso(&mut self, file: Recording<'_>, offset: u64) -> Option<Named> {
        let (start, name) = self.same_vdso(file)?.find(offset)?;
        Some(Named { name, start })
    }

    /// Reads a file, and says which of its path's builds it is.
    fn add(&mut self, file: Recording<'_>) -> usize {
        let opened = self.open(file).unwrap_or_else(|refusal| {
            self.refused.push((file.path.to_owned(), refusal));
            None
        });
        let build = Build {
            build_id: file.build_id.map(<[u8]>::to_vec),
            inode: file.inode,
            opened,
        };
        let builds = self.builds.entry(file.path.to_owned()).or_default();
        builds.push(build);
        builds.len() - 1
    }

    /// Opens what was recorded; none when it is not there.
    fn open(&self, file: Recording<'_>) -> Result<Option<Opened>, Refusal> {
        let named = file.path.strip_suffix(DELETED);
        let path = Path::new(named.unwrap_or(file.path));
        let kept = file.build_id.and_then(|id| self.kept_by_perf(id));
        let kept = kept.and_then(|kept| open_elf(&kept));
        let is_same = |elf: &Elf| elf.build_id.as_deref() == file.build_id;
        if let Some(elf) = kept.filter(is_same) {
            return Ok(Some(self.with_debug(elf, path)));
        }
        let Some(elf) = path
            .is_absolute()
            .then(|| open_elf(&self.below(path)))
            .flatten()
        else {
            return Ok(None);
        };
        let refusal = match (file.build_id, file.inode) {
            (Some(id), _) => (elf.build_id.as_deref() != Some(id)).then_some(Refusal::OtherBuild),
            (None, _) if named.is_some() => Some(Refusal::Deleted),
            (None, _) if self.is_vouched => None,
            (None, Some(inode)) => (elf.file.inode() != inode).then_some(Refusal::OtherInode),
            (None, None) => Some(Refusal::NoIdentity),
        };
        match refusal {
            Some(refusal) => Err(refusal),
            None => Ok(Some(self.with_debug(elf, path))),
        }
    }

    /// Reads the functions of a file, and those that were stripped from it.
    fn with_debug(&self, elf: Elf, path: &Path) -> Opened {
        let wanted = Wanted::of(&elf.headers, &elf.file);
        let debug = wanted.paths(path).into_iter().find_map(|path| {
            let debug = open_elf(&self.below(&path))?;
            let is_it = wanted.is_met_by(&debug.headers, &debug.file);
            is_it.then_some(debug)
        });
        let parts = debug
            .as_ref()
            .map(|debug| (&debug.headers, &debug.file as &dyn Source));
        Opened {
            code: Code::read(&elf.headers, &elf.file, parts, Limits::RECORDED),
            own: elf.file,
            debug: debug.map(|debug| debug.file),
        }
    }

    /// `~/.debug/.build-id/ab/cdef…/elf`
    fn kept_by_perf(&self, build_id: &[u8]) -> Option<PathBuf> {
        let (first, rest) = hex_parts(build_id)?;
        let folder = self.home.as_ref()?.join(".debug/.build-id");
        Some(folder.join(first).join(rest).join("elf"))
    }

    fn below(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The code that a process made while it ran.
    pub fn made(&mut self, pid: u32, address: u64) -> Option<Named> {
        let root = &self.root;
        let map = self.made.entry(pid).or_insert_with(|| {
            // Anyone can write to /tmp, so no link is followed.
            let file = CodeFile::open(&root.join(format!("tmp/perf-{pid}.map")), false).ok()?;
            let text = source::part(&file, 0, file.size(), MAX_TEXT as usize)?;
            Some(PerfMap::parse(&text, MAX_TEXT as usize))
        });
        let (start, name) = map.as_ref()?.find(address)?;
        Some(Named { name, start })
    }
}

/// A file that was opened.
struct Elf {
    file: CodeFile,
    headers: Headers,
    build_id: Option<Vec<u8>>,
}

fn open_elf(path: &Path) -> Option<Elf> {
    let file = CodeFile::open(path, true).ok()?;
    let headers = Headers::read(&file)?;
    Some(Elf {
        build_id: headers.build_id(&file),
        headers,
        file,
    })
}
