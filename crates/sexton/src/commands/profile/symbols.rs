//! Names of functions from files of this machine: `/proc/kallsyms`, programs and libraries,
//! their debug files, what perf keeps in `~/.debug`, and what run-time compilers write.
//!
//! The names of files come from the recording, and are not trusted: only regular files are
//! opened, and a file whose build-id is another one than the recording's is not used.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use ahash::AHashMap;
use anyhow::{Context, Result};
use rustix::fs::OFlags;
use sexton_model::text::escape;
use sexton_profile::symbols::demangle::demangle;
use sexton_profile::symbols::elf::{ElfSymbols, build_id_of_notes};
use sexton_profile::symbols::kallsyms::Kallsyms;
use sexton_profile::symbols::{AddressMap, Function, Place, Symbols, perf_map};

use crate::cli::profile::SymbolArgs;

/// A map of a run-time compiler, or a kallsyms, above this is not read.
const MAX_TEXT: u64 = 256 << 20;

/// Knows names from files.
pub struct FileSymbols {
    symfs: PathBuf,
    home: Option<PathBuf>,
    kallsyms_file: Option<PathBuf>,
    kernel: Option<Kernel>,
    /// The thread that reads them, once it is known that they will be asked for.
    coming: Option<JoinHandle<Kernel>>,
    /// By path; a path may have held several builds.
    modules: AHashMap<String, Vec<Module>>,
    jit: AHashMap<u32, Option<AddressMap>>,
    has_told_of_kernel: bool,
}

/// What is known of the kernel.
struct Kernel {
    file: PathBuf,
    kallsyms: Kallsyms,
    build_id: Option<Vec<u8>>,
    /// Names of functions by where they begin.
    names: AHashMap<u64, Arc<str>>,
}

impl Kernel {
    /// Reads the file that was named, or what this kernel says.
    fn load(named: Option<PathBuf>) -> Self {
        let is_ours = named.is_none();
        let file = named.unwrap_or_else(|| PathBuf::from("/proc/kallsyms"));
        let notes = is_ours.then(|| std::fs::read("/sys/kernel/notes").ok());
        let build_id = notes.flatten().and_then(|notes| build_id_of_notes(&notes));
        Self {
            kallsyms: Kallsyms::parse(&read_text(&file).unwrap_or_default()),
            file,
            build_id,
            names: AHashMap::new(),
        }
    }

    /// Whether the recording says that it is of another kernel than the names.
    fn is_other(&self, place: &Place<'_>) -> bool {
        let is_of_modules = !place.module.is_empty() && !place.module.starts_with("[kernel");
        match (&self.build_id, place.build_id) {
            (Some(ours), Some(theirs)) if !is_of_modules => ours != theirs,
            _ => false,
        }
    }

    fn find(&mut self, address: u64) -> Option<Function> {
        let found = self.kallsyms.find(address)?;
        let name = self.names.entry(found.start);
        Some(Function {
            name: Arc::clone(name.or_insert_with(|| found.name().into())),
            start: found.start,
        })
    }
}

/// One build of a file.
struct Module {
    build_id: Option<Vec<u8>>,
    elf: Option<ElfSymbols>,
    /// Names of functions by where they begin: many places are in one.
    names: AHashMap<u64, Arc<str>>,
}

impl FileSymbols {
    /// Opens nothing yet but the kallsyms that was asked for.
    pub fn new(args: &SymbolArgs) -> Result<Self> {
        if let Some(file) = &args.kallsyms {
            File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        Ok(Self {
            symfs: args.symfs.clone().unwrap_or_else(|| PathBuf::from("/")),
            home: env::home_dir(),
            kallsyms_file: args.kallsyms.clone(),
            kernel: None,
            coming: None,
            modules: AHashMap::new(),
            jit: AHashMap::new(),
            has_told_of_kernel: false,
        })
    }

    fn kernel_function(&mut self, place: &Place<'_>) -> Option<Function> {
        let has_told = self.has_told_of_kernel;
        let kernel = self.kernel();
        if !kernel.is_other(place) {
            return kernel.find(place.address);
        }
        if !has_told {
            eprintln!(
                "sexton: it was recorded on another kernel than this machine's; \
                 --kallsyms FILE gives names to its functions"
            );
        }
        self.has_told_of_kernel = true;
        None
    }

    /// What is known of the kernel; read when it is asked for, if not before.
    fn kernel(&mut self) -> &mut Kernel {
        if self.kernel.is_none() {
            let coming = self.coming.take().map(JoinHandle::join);
            let file = self.kallsyms_file.clone();
            let kernel = coming.and_then(Result::ok);
            let kernel = kernel.unwrap_or_else(|| Kernel::load(file));
            if kernel.kallsyms.is_empty() {
                self.has_told_of_kernel = true;
                eprintln!(
                    "sexton: {} hides addresses, so the kernel's functions have no names; as root they have",
                    kernel.file.display()
                );
            }
            self.kernel = Some(kernel);
        }
        self.kernel.as_mut().expect("it was just read")
    }

    fn user(&mut self, place: &Place<'_>) -> Option<Function> {
        let is_it = |module: &Module| module.build_id.as_deref() == place.build_id;
        let builds = self.modules.get(place.module);
        let known = builds.and_then(|builds| builds.iter().position(is_it));
        let at = match known {
            Some(at) => at,
            None => self.add(place),
        };
        let module = self.modules.get_mut(place.module)?.get_mut(at)?;
        let found = module.elf.as_ref()?.find(place.address)?;
        let readable = || escape(demangle(&found.name()).as_bytes()).into();
        let name = module.names.entry(found.start).or_insert_with(readable);
        Some(Function {
            name: Arc::clone(name),
            start: found.start,
        })
    }

    /// Reads the file of a place, and says which of its path's builds it is.
    fn add(&mut self, place: &Place<'_>) -> usize {
        let module = Module {
            build_id: place.build_id.map(<[u8]>::to_vec),
            elf: self.load(place.module, place.build_id),
            names: AHashMap::new(),
        };
        let builds = self.modules.entry(place.module.to_owned()).or_default();
        builds.push(module);
        builds.len() - 1
    }

    fn load(&self, module: &str, build_id: Option<&[u8]>) -> Option<ElfSymbols> {
        let path = module.strip_suffix(" (deleted)").unwrap_or(module);
        let kept = build_id.and_then(|id| self.kept_by_perf(id));
        let on_disk = path.starts_with('/').then(|| self.below_symfs(path));
        let candidates = [kept, on_disk];
        let elf = candidates.into_iter().flatten().find_map(|file| {
            let elf = read_elf(&file)?;
            let is_same = match (build_id, &elf.build_id) {
                (Some(wanted), Some(found)) => wanted == found,
                _ => true,
            };
            is_same.then_some(elf)
        })?;
        if !elf.is_stripped() {
            return Some(elf);
        }
        let debug = elf.build_id.as_deref().and_then(|id| self.debug_file(id));
        Some(match debug.and_then(|file| read_elf(&file)) {
            Some(debug) => elf.with_debug_file(debug),
            None => elf,
        })
    }

    fn below_symfs(&self, path: &str) -> PathBuf {
        self.symfs.join(path.trim_start_matches('/'))
    }

    /// `~/.debug/.build-id/ab/cdef…/elf`
    fn kept_by_perf(&self, build_id: &[u8]) -> Option<PathBuf> {
        let (first, rest) = hex_parts(build_id)?;
        let folder = self.home.as_ref()?.join(".debug/.build-id");
        Some(folder.join(first).join(rest).join("elf"))
    }

    fn debug_file(&self, build_id: &[u8]) -> Option<PathBuf> {
        let (first, rest) = hex_parts(build_id)?;
        let folder = self.below_symfs("/usr/lib/debug/.build-id");
        Some(folder.join(first).join(format!("{rest}.debug")))
    }

    fn jit(&mut self, place: &Place<'_>) -> Option<Function> {
        let symfs = &self.symfs;
        let map = self.jit.entry(place.pid).or_insert_with(|| {
            let file = symfs.join(format!("tmp/perf-{}.map", place.pid));
            Some(perf_map::parse(&read_text(&file)?))
        });
        let found = map.as_ref()?.find(place.address)?;
        Some(Function {
            name: escape(found.name().as_bytes()).into(),
            start: found.start,
        })
    }
}

impl Symbols for FileSymbols {
    fn resolve(&mut self, place: &Place<'_>) -> Option<Function> {
        if place.is_kernel {
            self.kernel_function(place)
        } else if place.is_jit {
            self.jit(place)
        } else {
            self.user(place)
        }
    }

    fn prepare(&mut self) {
        if self.kernel.is_none() && self.coming.is_none() {
            let file = self.kallsyms_file.clone();
            let named = thread::Builder::new().name("kallsyms".into());
            self.coming = named.spawn(|| Kernel::load(file)).ok();
        }
    }

    fn kernel_symbol(&mut self, name: &str) -> Option<u64> {
        self.kernel().kallsyms.address_of(name)
    }
}

fn hex_parts(build_id: &[u8]) -> Option<(String, String)> {
    let (first, rest) = build_id.split_first()?;
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    Some((hex(&[*first]), hex(rest)))
}

fn read_elf(file: &Path) -> Option<ElfSymbols> {
    ElfSymbols::read(BufReader::new(open_regular(file, OFlags::empty())?)).ok()
}

/// Whoever can write to `/tmp` may have made it, so no link is followed.
fn read_text(file: &Path) -> Option<String> {
    let opened = open_regular(file, OFlags::NOFOLLOW)?;
    let mut bytes = Vec::new();
    opened.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Opens a regular file and nothing else: a pipe or a device would wait for ever.
fn open_regular(file: &Path, flags: OFlags) -> Option<File> {
    let flags = (flags | OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(file)
        .ok()?;
    opened.metadata().ok()?.is_file().then_some(opened)
}
