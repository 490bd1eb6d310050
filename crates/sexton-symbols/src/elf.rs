//! ELF files: what their headers say, and their functions. Outside bytes, so nothing in them
//! is believed.
//!
//! Layouts and constants are those of the `object` crate. Its own reader wants a whole table in
//! memory; here tables are read piece by piece and within bounds. Only files of 64 bits in the
//! byte order of this machine are understood.

mod functions;
mod notes;
mod plt;

use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, FileHeader64, Machine, PF_X, PT_LOAD, ProgramHeader64,
    SHF_EXECINSTR, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, SectionHeader64, SectionType,
};
use object::endian::NativeEndian;

use crate::source::{Source, each, one, text};

pub use functions::{Function, Functions, Limits};
pub use notes::{DebugLink, build_id_of_notes};
pub use plt::Plt;

/// Sections and segments of a file; more are not looked at.
const MAX_HEADERS: u64 = 4096;

/// The byte order of the files that are understood.
pub(crate) const ORDER: NativeEndian = NativeEndian;

/// An executable part of a file and where it is loaded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// A part of the file that has a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: SectionType,
    name: u32,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) entry_size: u64,
    pub(crate) link: u32,
    pub(crate) is_code: bool,
}

/// What the headers of a file say.
#[derive(Debug)]
pub struct Headers {
    pub(crate) machine: Machine,
    pub(crate) segments: Vec<Segment>,
    pub(crate) sections: Vec<Section>,
    /// Which section holds the names of sections.
    names: usize,
}

impl Headers {
    /// Reads them; `None` when it is no such file.
    pub fn read(source: &dyn Source) -> Option<Self> {
        let order = if cfg!(target_endian = "little") {
            ELFDATA2LSB
        } else {
            ELFDATA2MSB
        };
        let header: FileHeader64<NativeEndian> = one(source, 0)?;
        let ident = header.e_ident;
        if ident.magic != *b"\x7fELF" || ident.class != ELFCLASS64 || ident.data != order {
            return None;
        }
        Some(Self {
            machine: header.e_machine.get(ORDER),
            segments: segments(source, &header),
            sections: sections(source, &header),
            names: usize::from(header.e_shstrndx.get(ORDER).0),
        })
    }

    /// Whether there is a full table of symbols, not just what is exported.
    pub fn has_all_symbols(&self) -> bool {
        self.section_of(SHT_SYMTAB).is_some()
    }

    /// Where in the file the code is that is loaded to an address.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            let offset = segment.offset.checked_add(within)?;
            (within < segment.size).then_some(offset)
        })
    }

    /// Where the lowest code is loaded to.
    pub(crate) fn base(&self) -> Option<u64> {
        self.segments.iter().map(|segment| segment.address).min()
    }

    pub(crate) fn section_of(&self, kind: SectionType) -> Option<Section> {
        let found = self.sections.iter().find(|section| section.kind == kind);
        found.copied().filter(|section| section.size > 0)
    }

    /// The fullest table of symbols.
    fn symbols(&self) -> Option<Section> {
        self.section_of(SHT_SYMTAB)
            .or_else(|| self.section_of(SHT_DYNSYM))
    }

    /// The section of this name.
    pub(crate) fn section_named(&self, source: &dyn Source, wanted: &[u8]) -> Option<Section> {
        let mut named = self.sections.iter().copied();
        named.find(|section| self.is_named(source, *section, wanted))
    }

    pub(crate) fn is_named(&self, source: &dyn Source, section: Section, wanted: &[u8]) -> bool {
        let name = || {
            let names = self.sections.get(self.names)?;
            let at = names.offset.checked_add(section.name.into())?;
            text(source, at, wanted.len() + 1)
        };
        section.kind != SHT_NOBITS && name().as_deref() == Some(wanted)
    }
}

fn segments(source: &dyn Source, header: &FileHeader64<NativeEndian>) -> Vec<Segment> {
    let mut segments = Vec::new();
    let n = u64::from(header.e_phnum.get(ORDER)).min(MAX_HEADERS);
    if usize::from(header.e_phentsize.get(ORDER)) != size_of::<ProgramHeader64<NativeEndian>>() {
        return segments;
    }
    let at = header.e_phoff.get(ORDER);
    each(source, at, n, |entry: &ProgramHeader64<NativeEndian>| {
        let is_code =
            entry.p_type.get(ORDER) == PT_LOAD && entry.p_flags.get(ORDER).0 & PF_X.0 != 0;
        segments.extend(is_code.then(|| Segment {
            offset: entry.p_offset.get(ORDER),
            address: entry.p_vaddr.get(ORDER),
            size: entry.p_filesz.get(ORDER),
        }));
        true
    });
    segments
}

fn sections(source: &dyn Source, header: &FileHeader64<NativeEndian>) -> Vec<Section> {
    let mut sections = Vec::new();
    let n = u64::from(header.e_shnum.get(ORDER)).min(MAX_HEADERS);
    if usize::from(header.e_shentsize.get(ORDER)) != size_of::<SectionHeader64<NativeEndian>>() {
        return sections;
    }
    let at = header.e_shoff.get(ORDER);
    each(source, at, n, |entry: &SectionHeader64<NativeEndian>| {
        sections.push(Section {
            kind: entry.sh_type.get(ORDER),
            name: entry.sh_name.get(ORDER),
            address: entry.sh_addr.get(ORDER),
            offset: entry.sh_offset.get(ORDER),
            size: entry.sh_size.get(ORDER),
            entry_size: entry.sh_entsize.get(ORDER),
            link: entry.sh_link.get(ORDER),
            is_code: entry.sh_flags.get(ORDER).0 & SHF_EXECINSTR.0 != 0,
        });
        true
    });
    sections
}
