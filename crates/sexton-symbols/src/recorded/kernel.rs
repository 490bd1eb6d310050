//! The kernel that was recorded: its names are those of a kallsyms.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ahash::AHashMap;
use sexton_host::code::CodeFile;

use super::{MAX_TEXT, Named};
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

    /// Whether a recording says that it is of another kernel than the names.
    pub fn is_other(&self, module: &str, build_id: Option<&[u8]>) -> bool {
        let is_of_modules = !module.is_empty() && !module.starts_with("[kernel");
        match (self.build_id.as_deref(), build_id) {
            (Some(ours), Some(theirs)) if !is_of_modules => ours != theirs,
            _ => false,
        }
    }

    /// The function that an address lies in.
    pub fn function(&mut self, address: u64) -> Option<Named> {
        let found = self.kallsyms.find(address)?;
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
