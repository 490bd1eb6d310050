//! The functions of an ELF file: outside bytes, so nothing in them is believed.
//!
//! Reads the table of symbols (`.symtab`, or `.dynsym` of a stripped file) piece by piece and
//! keeps twelve bytes for each function; names are read when they are asked for. Only files
//! of 64 bits in the byte order of this machine are understood.

use std::io;

/// Sections and segments of a file; more are not looked at.
const MAX_HEADERS: u64 = 4096;
/// Functions of a file; those of more are not known.
const MAX_FUNCTIONS: usize = 400_000;
/// Symbols that are read, functions or not.
const MAX_SYMBOLS: u64 = 4_000_000;
const MAX_NAME_BYTES: usize = 1024;
const MAX_NOTE_BYTES: u64 = 4096;

const SYMBOL_BYTES: usize = 24;
const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_NOTE: u32 = 7;
const SHT_DYNSYM: u32 = 11;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const NT_GNU_BUILD_ID: u32 = 3;

/// Bytes that are read here and there.
pub(super) trait Source {
    /// Reads as many bytes as there are.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Source for sexton_host::code::CodeFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        sexton_host::code::CodeFile::read_at(self, bytes, offset)
    }
}

/// An executable part of a file and where it is loaded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

/// A table of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

/// What the headers of a file say.
#[derive(Debug)]
pub(super) struct Headers {
    segments: Vec<Segment>,
    sections: Vec<Section>,
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Function {
    /// From the beginning of the lowest segment.
    start: u32,
    size: u32,
    name: u32,
}

/// The functions of a file, by address.
#[derive(Debug)]
pub(super) struct Functions {
    segments: Vec<Segment>,
    base: u64,
    sorted: Vec<Function>,
    /// Where the names are.
    names: Section,
}

/// Where a function is in its file, and where to read its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The offset of its beginning in the file.
    pub(super) offset: u64,
    pub(super) size: u32,
    name: u32,
}

fn exactly<const N: usize>(source: &dyn Source, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (source.read_at(&mut bytes, offset).ok()? == N).then_some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

impl Headers {
    /// Reads them; `None` when it is no such file.
    pub(super) fn read(source: &dyn Source) -> Option<Self> {
        const CLASS_64: u8 = 2;
        const OUR_ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };
        let header: [u8; 64] = exactly(source, 0)?;
        if header[..4] != *b"\x7fELF" || header[4] != CLASS_64 || header[5] != OUR_ORDER {
            return None;
        }
        let (segments_at, sections_at) = (u64_at(&header, 32), u64_at(&header, 40));
        let n_segments = u64::from(u16_at(&header, 56)).min(MAX_HEADERS);
        let n_sections = u64::from(u16_at(&header, 60)).min(MAX_HEADERS);
        let segments = (0..n_segments).filter_map(|i| segment(source, segments_at, i));
        let sections = (0..n_sections).map(|i| section(source, sections_at, i));
        Some(Self {
            segments: segments.collect(),
            sections: sections.map_while(|section| section).collect(),
        })
    }

    /// What tells this build from any other.
    pub(super) fn build_id(&self, source: &dyn Source) -> Option<Vec<u8>> {
        let notes = self
            .sections
            .iter()
            .filter(|section| section.kind == SHT_NOTE);
        notes
            .take(16)
            .find_map(|section| build_id_in(&read(source, *section, MAX_NOTE_BYTES)?))
    }

    /// Whether there is a full table of symbols, not just what is exported.
    pub(super) fn has_all_symbols(&self) -> bool {
        self.section_of(SHT_SYMTAB).is_some()
    }

    fn section_of(&self, kind: u32) -> Option<Section> {
        let found = self.sections.iter().find(|section| section.kind == kind);
        found.copied().filter(|section| section.size > 0)
    }

    /// Reads the functions; `None` when there is no table of symbols.
    pub(super) fn functions(&self, source: &dyn Source) -> Option<Functions> {
        let symbols = self
            .section_of(SHT_SYMTAB)
            .or(self.section_of(SHT_DYNSYM))?;
        let names = *self.sections.get(symbols.link as usize)?;
        let base = self.segments.iter().map(|segment| segment.address).min()?;
        let mut functions = Functions {
            segments: self.segments.clone(),
            base,
            sorted: Vec::new(),
            names,
        };
        functions.read_symbols(source, symbols);
        Some(functions)
    }
}

fn segment(source: &dyn Source, table: u64, i: u64) -> Option<Segment> {
    let header: [u8; 56] = exactly(source, table.checked_add(i * 56)?)?;
    let is_code = u32_at(&header, 0) == PT_LOAD && u32_at(&header, 4) & PF_X != 0;
    is_code.then(|| Segment {
        offset: u64_at(&header, 8),
        address: u64_at(&header, 16),
        size: u64_at(&header, 32),
    })
}

fn section(source: &dyn Source, table: u64, i: u64) -> Option<Section> {
    let header: [u8; 64] = exactly(source, table.checked_add(i * 64)?)?;
    Some(Section {
        kind: u32_at(&header, 4),
        offset: u64_at(&header, 24),
        size: u64_at(&header, 32),
        link: u32_at(&header, 40),
    })
}

/// A section, if it is not too large.
fn read(source: &dyn Source, section: Section, limit: u64) -> Option<Vec<u8>> {
    let size = usize::try_from(section.size.min(limit)).ok()?;
    let mut bytes = vec![0; size];
    let n = source.read_at(&mut bytes, section.offset).ok()?;
    bytes.truncate(n);
    Some(bytes)
}

fn build_id_in(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let (name_len, len) = (u32_at(notes, 0) as usize, u32_at(notes, 4) as usize);
        let kind = u32_at(notes, 8);
        let padded = |n: usize| n.checked_next_multiple_of(4);
        let name = notes.get(12..12_usize.checked_add(name_len)?)?;
        let at = 12_usize.checked_add(padded(name_len)?)?;
        let body = notes.get(at..at.checked_add(len)?)?;
        if name == b"GNU\0" && kind == NT_GNU_BUILD_ID && (4..=64).contains(&len) {
            return Some(body.to_vec());
        }
        notes = notes.get(at.checked_add(padded(len)?)?..)?;
    }
    None
}

impl Functions {
    fn read_symbols(&mut self, source: &dyn Source, symbols: Section) {
        const AT_ONCE: usize = 2048;
        let n = (symbols.size / SYMBOL_BYTES as u64).min(MAX_SYMBOLS);
        let mut bytes = vec![0; AT_ONCE * SYMBOL_BYTES];
        for first in (0..n).step_by(AT_ONCE) {
            let wanted = AT_ONCE.min((n - first) as usize) * SYMBOL_BYTES;
            let at = symbols.offset.saturating_add(first * SYMBOL_BYTES as u64);
            let Ok(got) = source.read_at(&mut bytes[..wanted], at) else {
                break;
            };
            for symbol in bytes[..got].chunks_exact(SYMBOL_BYTES) {
                self.sorted.extend(self.function(symbol));
            }
            if got < wanted || self.sorted.len() >= MAX_FUNCTIONS {
                break;
            }
        }
        // Of several names for one address the longest function is the whole one.
        self.sorted
            .sort_by_key(|function| (function.start, u32::MAX - function.size));
        self.sorted.dedup_by_key(|function| function.start);
        self.sorted.shrink_to_fit();
    }

    fn function(&self, symbol: &[u8]) -> Option<Function> {
        let is_defined = u16_at(symbol, 6) != 0;
        let is_code = matches!(symbol[4] & 0xf, STT_FUNC | STT_GNU_IFUNC);
        let start = u64_at(symbol, 8).checked_sub(self.base)?;
        (is_defined && is_code).then_some(Function {
            start: u32::try_from(start).ok()?,
            size: u32::try_from(u64_at(symbol, 16)).unwrap_or(u32::MAX),
            name: u32_at(symbol, 0),
        })
    }

    /// What the table takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.sorted.capacity() * size_of::<Function>()
    }

    /// Where the code of a place in the file is loaded to.
    fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = |segment: &&Segment| {
            offset
                .checked_sub(segment.offset)
                .is_some_and(|within| within < segment.size)
        };
        let segment = self.segments.iter().find(inside)?;
        segment.address.checked_add(offset - segment.offset)
    }

    fn offset_of(&self, address: u64) -> Option<u64> {
        let inside = |segment: &&Segment| {
            address
                .checked_sub(segment.address)
                .is_some_and(|within| within < segment.size)
        };
        let segment = self.segments.iter().find(inside)?;
        segment.offset.checked_add(address - segment.address)
    }

    /// The function that a place in the file lies in.
    pub(super) fn find(&self, offset: u64) -> Option<Found> {
        let at = self.address_of(offset)?.checked_sub(self.base)?;
        let above = self
            .sorted
            .partition_point(|function| u64::from(function.start) <= at);
        let function = self.sorted.get(above.checked_sub(1)?)?;
        // Code in assembler often has no size: it reaches to the next function.
        let within = at - u64::from(function.start);
        if function.size > 0 && within >= u64::from(function.size) {
            return None;
        }
        self.found(function)
    }

    fn found(&self, function: &Function) -> Option<Found> {
        Some(Found {
            offset: self.offset_of(self.base + u64::from(function.start))?,
            size: function.size,
            name: function.name,
        })
    }

    /// Functions spread evenly over the file, at most so many.
    pub(super) fn some(&self, n: usize) -> Vec<Found> {
        let step = (self.sorted.len() / n.max(1)).max(1);
        let some = self.sorted.iter().step_by(step).take(n);
        some.filter_map(|function| self.found(function)).collect()
    }

    /// The name of a function, from the file that these functions were read from.
    pub(super) fn name(&self, source: &dyn Source, found: Found) -> Option<Vec<u8>> {
        let room = self.names.size.checked_sub(found.name.into())?;
        let room = usize::try_from(room).ok()?.min(MAX_NAME_BYTES);
        let mut bytes = vec![0; room];
        let at = self.names.offset.checked_add(found.name.into())?;
        let n = source.read_at(&mut bytes, at).ok()?;
        let name = bytes[..n].split(|byte| *byte == 0).next()?;
        (!name.is_empty()).then(|| name.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Source for Vec<u8> {
        fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
            let n = rest.unwrap_or_default().len().min(bytes.len());
            bytes[..n].copy_from_slice(&rest.unwrap_or_default()[..n]);
            Ok(n)
        }
    }

    fn own() -> Vec<u8> {
        static OWN: std::sync::LazyLock<Vec<u8>> =
            std::sync::LazyLock::new(|| std::fs::read("/proc/self/exe").expect("this test"));
        OWN.clone()
    }

    #[test]
    fn our_own_functions_are_found() {
        let file = own();
        let headers = Headers::read(&file).expect("headers");
        let functions = headers.functions(&file).expect("functions");
        let some = functions.some(100);
        assert!(some.len() > 50, "{}", some.len());
        for found in some {
            assert_eq!(functions.find(found.offset), Some(found));
            assert!(functions.name(&file, found).is_some());
        }
        let name = |found| functions.name(&file, found);
        let all = functions
            .sorted
            .iter()
            .filter_map(|one| functions.found(one));
        let ours = all.filter_map(name).any(|name| {
            super::super::demangle::readable(&name).ends_with("our_own_functions_are_found")
        });
        assert!(ours, "this function is not among them");
    }

    fn walk(file: &Vec<u8>) {
        if let Some(headers) = Headers::read(file) {
            headers.build_id(file);
            if let Some(functions) = headers.functions(file) {
                for found in functions.some(10) {
                    functions.name(file, found);
                }
                for offset in [0, 1 << 12, u64::MAX] {
                    functions.find(offset);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn damaged_files_are_read_without_panic(
            changes in prop::collection::vec((0_usize..4096, any::<u8>()), 1..40),
            cut in 64_usize..200_000,
        ) {
            let mut file = own();
            let n = file.len();
            for (at, byte) in changes {
                // The headers are at both ends.
                file[at] = byte;
                file[n - 1 - at] = byte;
            }
            walk(&file);
            file.truncate(cut);
            walk(&file);
        }

        #[test]
        fn any_bytes_are_read_without_panic(tail in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1];
            file.extend(tail);
            walk(&file);
        }

        #[test]
        fn any_notes_are_read_without_panic(notes in prop::collection::vec(any::<u8>(), 0..200)) {
            build_id_in(&notes);
        }
    }
}
