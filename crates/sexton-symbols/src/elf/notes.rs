//! What tells one build of a file from another, and the name of its debug file.

use object::elf::{FileHeader64, NT_GNU_BUILD_ID, SHT_NOTE};
use object::endian::NativeEndian;
use object::read::elf::NoteIterator;

use super::{Headers, ORDER};
use crate::source::{Source, part};

const MAX_NOTE_BYTES: usize = 4096;
const MAX_NOTE_SECTIONS: usize = 16;
const MAX_LINK_BYTES: usize = 512;

/// `.gnu_debuglink`: the file that holds what was stripped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugLink {
    /// Its name, without a folder.
    pub name: Vec<u8>,
    /// The checksum of its contents.
    pub crc: u32,
}

impl Headers {
    /// What tells this build from any other.
    pub fn build_id(&self, source: &dyn Source) -> Option<Vec<u8>> {
        let notes = self.sections.iter().filter(|part| part.kind == SHT_NOTE);
        notes.take(MAX_NOTE_SECTIONS).find_map(|section| {
            let notes = part(source, section.offset, section.size, MAX_NOTE_BYTES)?;
            build_id_of_notes(&notes)
        })
    }

    /// Where the file says its debug file is.
    pub fn debug_link(&self, source: &dyn Source) -> Option<DebugLink> {
        let section = self.section_named(source, b".gnu_debuglink")?;
        parse_link(&part(source, section.offset, section.size, MAX_LINK_BYTES)?)
    }
}

/// The build-id among notes, such as those of `/sys/kernel/notes`.
pub fn build_id_of_notes(notes: &[u8]) -> Option<Vec<u8>> {
    const ALIGNED: u64 = 4;
    let mut notes = NoteIterator::<FileHeader64<NativeEndian>>::new(ORDER, ALIGNED, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        let id = note.desc();
        let is_it = note.name() == b"GNU" && note.n_type(ORDER) == NT_GNU_BUILD_ID;
        if is_it && (4..=64).contains(&id.len()) {
            return Some(id.to_vec());
        }
    }
    None
}

/// A name, zeros up to a multiple of four, and the checksum.
fn parse_link(section: &[u8]) -> Option<DebugLink> {
    let len = section.iter().position(|byte| *byte == 0)?;
    let name = &section[..len];
    let at = (len + 1).next_multiple_of(4);
    let crc = section.get(at..at + 4)?.try_into().ok()?;
    let is_plain = !name.is_empty() && name != b".." && !name.contains(&b'/');
    is_plain.then(|| DebugLink {
        name: name.to_vec(),
        crc: u32::from_ne_bytes(crc),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_link_has_a_name_and_a_checksum() {
        let link = parse_link(b"ab.debug\0\0\0\0\x01\x00\x00\x00");
        assert_eq!(link.expect("a link").name, b"ab.debug");
        assert_eq!(parse_link(b"ab.debug\0\0\0\0\x01"), None);
        assert_eq!(parse_link(b"../x.debug\0\0\x01\x00\x00\x00"), None);
        assert_eq!(parse_link(b"endless"), None);
    }

    proptest! {
        #[test]
        fn any_notes_are_read_without_panic(notes in prop::collection::vec(any::<u8>(), 0..200)) {
            build_id_of_notes(&notes);
            parse_link(&notes);
        }
    }
}
