//! Functions of a program or library: the symbol tables of a 64-bit little-endian ELF file.
//! The file may be anybody's, so every size is checked and bounded before it is used.

use std::io::{self, Read, Seek, SeekFrom};

use super::{AddressMap, Found, Prefer};

/// Symbol tables, string tables and program headers above this are not read.
const MAX_SECTION_BYTES: u64 = 512 << 20;

/// What one file says of its functions.
#[derive(Debug, Default)]
pub struct ElfSymbols {
    /// Functions by their address in the file's own address space.
    pub functions: AddressMap,
    /// What identifies its contents.
    pub build_id: Option<Vec<u8>>,
    segments: Vec<Segment>,
    has_full_table: bool,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

#[derive(Debug, Clone, Copy)]
struct Section {
    kind: u32,
    is_code: bool,
    offset: u64,
    size: u64,
    link: u32,
}

const SYMTAB: u32 = 2;
const NOTE: u32 = 7;
const DYNSYM: u32 = 11;
const EXECUTABLE: u64 = 4;
const LABEL: u8 = 0;
const FUNCTION: u8 = 2;
const INDIRECT_FUNCTION: u8 = 10;

impl ElfSymbols {
    /// Reads them. An error says why this is no such file.
    pub fn read<R: Read + Seek>(mut file: R) -> io::Result<Self> {
        let header = read_at(&mut file, 0, 64)?;
        if header.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(invalid("not a 64-bit little-endian ELF file"));
        }
        let mut elf = Self {
            segments: segments(&mut file, &header)?,
            ..Self::default()
        };
        let sections = sections(&mut file, &header)?;
        for section in sections.iter().filter(|section| section.kind == NOTE) {
            let notes = read_at(&mut file, section.offset, section.size.min(4096))?;
            elf.build_id = elf.build_id.or_else(|| build_id_of_notes(&notes));
        }
        // The full table holds what the dynamic one does.
        let of_kind = |kind| sections.iter().find(|section| section.kind == kind);
        elf.has_full_table = of_kind(SYMTAB).is_some_and(|section| section.size > 24);
        let table = of_kind(SYMTAB).filter(|_| elf.has_full_table);
        if let Some(table) = table.or_else(|| of_kind(DYNSYM)) {
            let names = sections.get(table.link as usize);
            let names = names.ok_or_else(|| invalid("a symbol table without names"))?;
            let symbols = read_at(&mut file, table.offset, table.size)?;
            let names = read_at(&mut file, names.offset, names.size)?;
            elf.functions = AddressMap::with_names(names);
            elf.add_functions(&symbols, &sections);
        }
        elf.functions.finish(Prefer::Best);
        Ok(elf)
    }

    /// Whether only the names that other files may use are there: the file was stripped.
    pub fn is_stripped(&self) -> bool {
        !self.has_full_table
    }

    /// Takes the functions of the file that holds this one's debug information.
    pub fn with_debug_file(mut self, debug: Self) -> Self {
        if debug.has_full_table {
            self.functions = debug.functions;
            self.has_full_table = true;
        }
        self
    }

    /// The function at this offset of the file; it begins at an offset, too.
    pub fn find(&self, offset: u64) -> Option<Found<'_>> {
        let inside = |segment: &&Segment| {
            offset
                .checked_sub(segment.offset)
                .is_some_and(|n| n < segment.size)
        };
        let segment = self.segments.iter().find(inside)?;
        let address = segment.address.wrapping_add(offset - segment.offset);
        let found = self.functions.find(address)?;
        // One that begins in another segment has no offset that is counted from here.
        let start = found.start.wrapping_sub(segment.address);
        Some(Found {
            start: start.wrapping_add(segment.offset),
            ..found
        })
    }

    fn add_functions(&mut self, symbols: &[u8], sections: &[Section]) {
        for symbol in symbols.chunks_exact(24) {
            let (Some(info), section) = (symbol.get(4), u16_at(symbol, 6)) else {
                continue;
            };
            let is_function = match info & 15 {
                FUNCTION | INDIRECT_FUNCTION => section != 0,
                // Functions in assembler have no kind.
                LABEL => sections
                    .get(usize::from(section))
                    .is_some_and(|s| s.is_code),
                _ => false,
            };
            if !is_function {
                continue;
            }
            let (start, size) = (u64_at(symbol, 8), u64_at(symbol, 16));
            self.functions.add_named_at(
                start,
                start.saturating_add(size),
                rank(info >> 4, size),
                u32_at(symbol, 0),
            );
        }
    }
}

/// Local is 0, global 1, weak 2. A name with a size beats one without.
fn rank(binding: u8, size: u64) -> u8 {
    let by_binding = match binding {
        1 => 2,
        0 => 1,
        _ => 0,
    };
    by_binding + if size > 0 { 4 } else { 0 }
}

fn segments<R: Read + Seek>(file: &mut R, header: &[u8]) -> io::Result<Vec<Segment>> {
    const LOAD: u32 = 1;
    let (at, each, n) = (
        u64_at(header, 32),
        u64::from(u16_at(header, 54)),
        u64::from(u16_at(header, 56)),
    );
    if each != 56 {
        return Ok(Vec::new());
    }
    let table = read_at(file, at, each * n)?;
    let loads = table
        .chunks_exact(56)
        .filter(|entry| u32_at(entry, 0) == LOAD);
    let segment = |entry: &[u8]| Segment {
        offset: u64_at(entry, 8),
        address: u64_at(entry, 16),
        size: u64_at(entry, 32),
    };
    Ok(loads.map(segment).collect())
}

fn sections<R: Read + Seek>(file: &mut R, header: &[u8]) -> io::Result<Vec<Section>> {
    let (at, each, n) = (
        u64_at(header, 40),
        u64::from(u16_at(header, 58)),
        u64::from(u16_at(header, 60)),
    );
    if each != 64 || at == 0 {
        return Ok(Vec::new());
    }
    let table = read_at(file, at, each * n)?;
    let section = |entry: &[u8]| Section {
        kind: u32_at(entry, 4),
        is_code: u64_at(entry, 8) & EXECUTABLE != 0,
        offset: u64_at(entry, 24),
        size: u64_at(entry, 32),
        link: u32_at(entry, 40),
    };
    Ok(table.chunks_exact(64).map(section).collect())
}

/// The build-id among notes (name `GNU`, type 3), such as those of `/sys/kernel/notes`.
pub fn build_id_of_notes(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let (name_len, len, kind) = (u32_at(notes, 0), u32_at(notes, 4), u32_at(notes, 8));
        let name_end = 12usize.checked_add((name_len as usize).checked_next_multiple_of(4)?)?;
        let end = name_end.checked_add(len as usize)?;
        if kind == 3 && notes.get(12..16) == Some(b"GNU\0") {
            return notes.get(name_end..end).map(<[u8]>::to_vec);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
    None
}

fn read_at<R: Read + Seek>(file: &mut R, at: u64, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_SECTION_BYTES {
        return Err(invalid("a section that is too large to be one"));
    }
    file.seek(SeekFrom::Start(at))?;
    // Grows as bytes come, so that a small file that promises much costs little.
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size {
        Ok(bytes)
    } else {
        Err(invalid("the file ends inside a section"))
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let field = bytes
        .get(at..at + 2)
        .and_then(|field| field.try_into().ok());
    field.map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let field = bytes
        .get(at..at + 4)
        .and_then(|field| field.try_into().ok());
    field.map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes
        .get(at..at + 8)
        .and_then(|field| field.try_into().ok());
    field.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// The test program itself: a real file whose functions are known.
    fn own_bytes() -> Vec<u8> {
        let path = std::env::current_exe().expect("the test has a path");
        std::fs::read(path).expect("it can be read")
    }

    #[test]
    fn the_functions_of_this_very_test_are_found() {
        let elf = ElfSymbols::read(Cursor::new(own_bytes())).expect("it is an ELF file");
        assert!(!elf.is_stripped());
        let is_ours = |name: &str| name.contains("the_functions_of_this_very_test");
        let has_us = elf.functions.iter().any(|found| is_ours(&found.name()));
        assert!(
            has_us,
            "{} functions, none of them this one",
            elf.functions.len()
        );
    }

    #[test]
    fn something_else_is_refused() {
        let error = ElfSymbols::read(Cursor::new(vec![0u8; 200])).expect_err("no ELF");
        assert!(error.to_string().contains("not a 64-bit"), "{error}");
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in 0usize..4096, byte: u8, cut in 64usize..16_000) {
            // A small program, so that its section headers are within reach.
            let mut bytes = include_bytes!("../../../../fixtures/6.18-debian12/perf/root/tmp/burn/burn").to_vec();
            bytes.truncate(cut);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            if let Ok(elf) = ElfSymbols::read(Cursor::new(bytes)) {
                elf.find(u64::from(byte) << 4);
            }
        }
    }
}
