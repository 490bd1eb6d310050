//! Names of functions from files of this machine: `/proc/kallsyms`, programs and libraries,
//! their debug files, what perf keeps in `~/.debug`, and what run-time compilers write.
//!
//! The names of files come from the recording, and are not trusted: only regular files are
//! opened, and a file that is not the one that was recorded is not used, which is said.

use std::env;
use std::fs::File;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use sexton_profile::symbols::{Function, Place, Symbols, UnwindTables};
use sexton_symbols::recorded::{Kernel, Named, Origin, Recorded, Recording, Refusal};
use sexton_symbols::unwinding::Tables;

use crate::cli::profile::SymbolArgs;

/// Files that are said to be others than those recorded; more are counted.
const MAX_SAID: usize = 5;

/// Knows names from files.
pub struct FileSymbols {
    files: Recorded,
    kallsyms_file: Option<PathBuf>,
    kernel: Option<Kernel>,
    /// The thread that reads them, once it is known that they will be asked for.
    coming: Option<JoinHandle<Kernel>>,
    has_told_of_kernel: bool,
    n_refused: usize,
    origin: Origin,
}

impl FileSymbols {
    /// Opens nothing yet but the kallsyms that was asked for.
    pub fn new(args: &SymbolArgs) -> Result<Self> {
        if let Some(file) = &args.kallsyms {
            File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        Ok(Self {
            files: Recorded::new(args.symfs.clone(), env::home_dir()),
            kallsyms_file: args.kallsyms.clone(),
            kernel: None,
            coming: None,
            has_told_of_kernel: false,
            n_refused: 0,
            origin: Origin::default(),
        })
    }

    fn kernel_function(&mut self, place: &Place<'_>) -> Option<Named> {
        let has_told = self.has_told_of_kernel;
        let kernel = self.kernel();
        if !kernel.is_other(place.module, place.build_id) {
            return kernel.function(place.address);
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
            let kernel = kernel.unwrap_or_else(|| Kernel::read(file));
            if kernel.is_hidden() {
                self.has_told_of_kernel = true;
                eprintln!(
                    "sexton: {} hides addresses, so the kernel's functions have no names; as root they have",
                    kernel.file().display()
                );
            }
            self.kernel.insert(kernel).recorded_on(&self.origin);
        }
        self.kernel.as_mut().expect("it was just read")
    }

    fn user(&mut self, place: &Place<'_>) -> Option<Named> {
        let named = self.files.function(recording(place), place.address);
        self.tell_refused();
        named
    }

    /// Says which files are not those that were recorded.
    fn tell_refused(&mut self) {
        for (path, refusal) in self.files.take_refused() {
            self.n_refused += 1;
            if self.n_refused <= MAX_SAID {
                eprintln!("sexton: {path}: {}", said(refusal));
            }
        }
    }
}

/// The file of a place.
fn recording<'a>(place: &Place<'a>) -> Recording<'a> {
    Recording {
        path: place.module,
        build_id: place.build_id,
        is_id_of_mapping: place.is_id_of_mapping,
        inode: place.inode,
    }
}

/// Tables as profiles know them.
fn tables(tables: Tables) -> UnwindTables {
    let section = |(address, bytes): (u64, Vec<u8>)| (address, bytes.into());
    let code = tables.code.iter();
    UnwindTables {
        code: code
            .map(|part| (part.offset, part.address, part.size))
            .collect(),
        text: tables.text,
        got: tables.got,
        eh_frame: section(tables.eh_frame),
        eh_frame_hdr: tables.eh_frame_hdr.map(section),
    }
}

/// Why a file's functions have no names.
fn said(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::OtherBuild => {
            "functions have no names: the file there now has another build-id than the recorded one"
        }
        Refusal::OtherInode => {
            "functions have no names: the file there now is not the recorded one (another inode, \
             and no build-id was recorded); --symfs FOLDER uses the files below FOLDER"
        }
        Refusal::Replaced => {
            "functions have no names: the file there now is not the recorded one (another inode), \
             and perf read its build-id only when the recording ended; perf record --buildid-mmap \
             reads it in time, --symfs / uses the file all the same"
        }
        Refusal::Deleted => {
            "functions have no names: the file was replaced or removed before it was recorded, \
             and no build-id was recorded"
        }
        Refusal::NoIdentity => {
            "functions have no names: the recording has no build-id and no inode of the file; \
             --symfs FOLDER uses the files below FOLDER"
        }
        Refusal::UnknownVdso => {
            "functions have no names: every kernel has its own vdso, and the recording does not \
             say which (perf record -o FILE does, through a pipe perf does not)"
        }
    }
}

impl Drop for FileSymbols {
    fn drop(&mut self) {
        if self.n_refused > MAX_SAID {
            let n = self.n_refused - MAX_SAID;
            eprintln!("sexton: {n} more files are not the recorded ones");
        }
    }
}

impl Symbols for FileSymbols {
    fn recorded_on(&mut self, node: Option<&str>, release: Option<&str>) {
        self.origin = Origin {
            host: node.map(str::to_owned),
            release: release.map(str::to_owned),
        };
        self.files.recorded_on(&self.origin);
        if let Some(kernel) = &mut self.kernel {
            kernel.recorded_on(&self.origin);
        }
    }

    fn resolve(&mut self, place: &Place<'_>) -> Option<Function> {
        let named = if place.is_kernel {
            self.kernel_function(place)
        } else if place.is_jit {
            self.files.made(place.pid, place.address)
        } else {
            self.user(place)
        };
        named.map(|named| Function {
            name: named.name,
            start: named.start,
        })
    }

    fn unwind_tables(&mut self, place: &Place<'_>) -> Option<UnwindTables> {
        let found = self.files.unwind_tables(recording(place));
        self.tell_refused();
        found.map(tables)
    }

    fn prepare(&mut self) {
        if self.kernel.is_none() && self.coming.is_none() {
            let file = self.kallsyms_file.clone();
            let named = thread::Builder::new().name("kallsyms".into());
            self.coming = named.spawn(|| Kernel::read(file)).ok();
        }
    }

    fn kernel_symbol(&mut self, name: &str) -> Option<u64> {
        self.kernel().address_of(name)
    }
}
