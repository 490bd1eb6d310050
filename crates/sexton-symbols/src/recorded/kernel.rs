//! The kernel that was recorded: its names are those of a kallsyms.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ahash::AHashMap;
use sexton_host::Host;
use sexton_host::code::CodeFile;

use super::{MAX_TEXT, Named, Origin};
use crate::demangle::plain;
use crate::elf::build_id_of_notes;
use crate::kallsyms::Kallsyms;
use crate::source::{each_line, part};

const OURS: &str = "/proc/kallsyms";
const NOTES: &str = "/sys/kernel/notes";
const MAX_NOTES: usize = 1 << 16;

/// What is known of the kernel.
#[derive(Debug)]
pub struct Kernel {
    file: PathBuf,
    kallsyms: Kallsyms,
    build_id: Option<Vec<u8>>,
    /// Whether the recording says that it is of a kernel of another release.
    is_other_release: bool,
    /// Whether a file was named: then the user knows which kernel it is of.
    is_named: bool,
    /// Names of functions by where they begin.
    names: AHashMap<u64, Arc<str>>,
}

impl Kernel {
    /// Reads the file that was named, or what this kernel says.
    pub fn read(named: Option<PathBuf>) -> Self {
        let notes = || {
            part(
                &CodeFile::open(Path::new(NOTES), true).ok()?,
                0,
                u64::MAX,
                MAX_NOTES,
            )
        };
        let notes = if named.is_none() { notes() } else { None };
        let is_named = named.is_some();
        let file = named.unwrap_or_else(|| PathBuf::from(OURS));
        let mut kallsyms = Kallsyms::default();
        if let Ok(opened) = CodeFile::open(&file, true) {
            // What was read before an error holds.
            let _ = each_line(&opened, MAX_TEXT, |line| kallsyms.add(line));
        }
        kallsyms.finish();
        Self {
            file,
            kallsyms,
            build_id: notes.and_then(|notes| build_id_of_notes(&notes)),
            is_other_release: false,
            is_named,
            names: AHashMap::new(),
        }
    }

    /// Where its names are from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether no address is known, because the kernel hides them.
    pub fn is_hidden(&self) -> bool {
        self.kallsyms.is_empty()
    }

    /// Takes what a recording says of its node.
    pub fn recorded_on(&mut self, origin: &Origin) {
        let is_other = |host: Host| origin.is_other_release(&host);
        self.is_other_release = !self.is_named && Host::live().is_ok_and(is_other);
    }

    /// Whether a recording says that it is of another kernel than the names.
    pub fn is_other(&self, module: &str, build_id: Option<&[u8]>) -> bool {
        let is_of_modules = !module.is_empty() && !module.starts_with("[kernel");
        match (self.build_id.as_deref(), build_id) {
            (Some(ours), Some(theirs)) if !is_of_modules => ours != theirs,
            _ => self.is_other_release,
        }
    }

    /// The function that an address lies in. Code that the kernel made is named by the recording
    /// itself: what is there now may be another program.
    pub fn function(&mut self, address: u64) -> Option<Named> {
        let found = self.kallsyms.find(address).filter(|f| !f.is_made())?;
        let name = self.names.entry(found.start);
        Some(Named {
            name: Arc::clone(name.or_insert_with(|| plain(found.name.as_bytes()).into())),
            start: found.start,
        })
    }

    /// Where `_text` or `_stext` is.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        self.kallsyms.address_of(name)
    }
}
