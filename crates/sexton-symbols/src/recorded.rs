//! Names of what a recording of perf tells of: files of this machine, or of a copy of
//! another's, that are what was recorded.
//!
//! A path is no proof: programs are upgraded while they run. A file names functions only if
//! its build-id is the recorded one, or, where the recording has none, its inode. The build-ids
//! that perf writes when a recording ends are those of the files that have the paths by then;
//! so the inode must not be another either. What was refused is kept, so that it can be said.

mod kernel;
mod origin;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ahash::AHashMap;
use sexton_host::Host;
use sexton_host::code::CodeFile;
use sexton_model::stack::Inode;

pub use kernel::Kernel;
pub use origin::Origin;

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
    /// Whether that was read when the file was mapped. Otherwise it is that of the file that
    /// had the path when the recording ended.
    pub is_id_of_mapping: bool,
    /// Which file of its node it is.
    pub inode: Option<Inode>,
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
    /// It has the recorded build-id, but another inode: perf read the build-id when the
    /// recording ended, and the file may have been replaced before.
    Replaced,
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
    host: Option<Host>,
    /// Whether the recording says that it is of another node.
    is_elsewhere: bool,
    /// Whether the recording says that it is of this node and of this kernel's release.
    is_same_kernel: bool,
}

/// One build of a file.
#[derive(Debug)]
struct Build {
    build_id: Option<Vec<u8>>,
    is_id_of_mapping: bool,
    inode: Option<Inode>,
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
            host: Host::live().ok(),
            is_elsewhere: false,
            is_same_kernel: false,
        }
    }

    /// Takes what the recording says of its node.
    pub fn recorded_on(&mut self, origin: &Origin) {
        if let Some(host) = &self.host {
            self.is_elsewhere = origin.is_elsewhere(host);
            self.is_same_kernel = origin.is_this_kernel(host);
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
        let is_it = |build: &Build| {
            build.build_id.as_deref() == file.build_id
                && build.is_id_of_mapping == file.is_id_of_mapping
                && build.inode == file.inode
        };
        let builds = self.builds.get(file.path);
        let at = match builds.and_then(|builds| builds.iter().position(is_it)) {
            Some(at) => at,
            None => self.add(file),
        };
        self.builds.get(file.path)?.get(at)?.opened.as_ref()
    }

    /// The vdso, if it is that of the recording: every kernel has its own.
    fn same_vdso(&mut self, file: Recording<'_>) -> Option<&Vdso> {
        let ours = || Vdso::read(self.host.as_ref()?);
        let vdso = self.vdso.get_or_insert_with(ours).as_ref()?;
        let refusal = match file.build_id {
            None if self.is_same_kernel => None,
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
            is_id_of_mapping: file.is_id_of_mapping,
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
        let there = path
            .is_absolute()
            .then(|| open_elf(&self.below(path)))
            .flatten();
        let replaced = there
            .as_ref()
            .is_some_and(|elf| self.has_other_inode(file, elf));
        let kept = file.build_id.and_then(|id| self.kept_by_perf(id));
        let kept = kept.and_then(|kept| open_elf(&kept)).filter(|elf| {
            elf.build_id.as_deref() == file.build_id && (!replaced || is_inode(file, elf))
        });
        if let Some(elf) = kept {
            return Ok(Some(self.with_debug(elf, path)));
        }
        let Some(elf) = there else {
            return Ok(None);
        };
        let refusal = match file.build_id {
            Some(id) if elf.build_id.as_deref() != Some(id) => Some(Refusal::OtherBuild),
            Some(_) => replaced.then_some(Refusal::Replaced),
            None if named.is_some() => Some(Refusal::Deleted),
            None if self.is_vouched => None,
            None if file.inode.is_none() => Some(Refusal::NoIdentity),
            None => (!is_inode(file, &elf)).then_some(Refusal::OtherInode),
        };
        match refusal {
            Some(refusal) => Err(refusal),
            None => Ok(Some(self.with_debug(elf, path))),
        }
    }

    /// Whether the file that has the path now is surely another than the one that was mapped,
    /// so that the build-id that perf read of the path may be another's, too. Inodes of other
    /// nodes, and of other file systems such as that of a container, say nothing.
    fn has_other_inode(&self, file: Recording<'_>, elf: &Elf) -> bool {
        let Some(inode) = file.inode else {
            return false;
        };
        let can_tell = !file.is_id_of_mapping && !self.is_vouched && !self.is_elsewhere;
        let on_same_device = || {
            let host = self.host.as_ref()?;
            Some(elf.file.device(host)? == inode.device)
        };
        can_tell && !is_inode(file, elf) && on_same_device() == Some(true)
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
        // Here the number is another process's.
        if self.is_elsewhere && !self.is_vouched {
            return None;
        }
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

/// Whether a file has the recorded inode, and is not one that got its number later.
fn is_inode(file: Recording<'_>, elf: &Elf) -> bool {
    file.inode.is_some_and(|inode| {
        let generations = inode.generation.zip(elf.file.generation());
        inode.number == elf.file.inode() && generations.is_none_or(|(theirs, its)| theirs == its)
    })
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
