//! What is needed to unwind stacks through a file: its `.eh_frame` and where code is loaded to.

use crate::elf::{Headers, Section};
use crate::source::{Source, part};

/// A larger section is not read.
const MAX_SECTION: usize = 64 << 20;

/// A part of a file that is loaded to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// Where it is in the file.
    pub offset: u64,
    /// Where it is loaded to, before the file is moved as a whole.
    pub address: u64,
    /// How long it is.
    pub size: u64,
}

/// The tables of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// Its code.
    pub code: Vec<Loaded>,
    /// Where `.text` is loaded to.
    pub text: Option<(u64, u64)>,
    /// Where `.got` is loaded to.
    pub got: Option<(u64, u64)>,
    /// `.eh_frame`: where it is loaded to, and its bytes.
    pub eh_frame: (u64, Vec<u8>),
    /// The index of it.
    pub eh_frame_hdr: Option<(u64, Vec<u8>)>,
}

impl Tables {
    /// Reads them; `None` when the file has none, or too large ones.
    pub(crate) fn read(source: &dyn Source) -> Option<Self> {
        let headers = Headers::read(source)?;
        let named = |name: &[u8]| headers.section_named(source, name);
        let place = |section: Section| (section.address, section.size);
        let bytes = |section: Section| {
            let is_small = usize::try_from(section.size).is_ok_and(|size| size <= MAX_SECTION);
            let bytes = is_small.then(|| part(source, section.offset, section.size, MAX_SECTION));
            let bytes = bytes.flatten().filter(|bytes| !bytes.is_empty())?;
            Some((section.address, bytes))
        };
        let code = headers.segments.iter().map(|segment| Loaded {
            offset: segment.offset,
            address: segment.address,
            size: segment.size,
        });
        Some(Self {
            code: code.collect(),
            text: named(b".text").map(place),
            got: named(b".got").map(place),
            eh_frame: named(b".eh_frame").and_then(bytes)?,
            eh_frame_hdr: named(b".eh_frame_hdr").and_then(bytes),
        })
    }
}
