//! The header of a file, and what lies behind its records: names of events, build-ids.

use std::io::{Read, Seek, SeekFrom};

use super::attr::Attrs;
use super::fields::Fields;
use crate::import::ImportError;

pub(super) const HEADER_SIZE: usize = 104;

const BUILD_ID: u32 = 2;
const HOSTNAME: u32 = 3;
const OSRELEASE: u32 = 4;
const EVENT_DESC: u32 = 12;
const N_FEATURES: u32 = 256;

/// A feature above this is not read.
const MAX_FEATURE: u64 = 64 << 20;

/// A part of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Section {
    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            offset: fields.u64()?,
            size: fields.u64()?,
        })
    }

    /// Its bytes, when it lies in `bytes`, which begin where the file begins.
    pub(super) fn within(self, bytes: &[u8]) -> Option<&[u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let end = start.checked_add(usize::try_from(self.size).ok()?)?;
        bytes.get(start..end)
    }
}

/// `struct perf_file_header`.
#[derive(Debug, Default)]
pub(super) struct FileHeader {
    pub(super) attr_size: u64,
    pub(super) attrs: Section,
    pub(super) data: Section,
    features: [u64; 4],
}

impl FileHeader {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ImportError> {
        Self::fields(bytes).ok_or(ImportError::Header("it ends within the first 104 bytes"))
    }

    fn fields(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes.get(16..)?);
        let mut header = Self {
            attr_size: fields.u64()?,
            attrs: Section::parse(&mut fields)?,
            data: Section::parse(&mut fields)?,
            features: [0; 4],
        };
        Section::parse(&mut fields)?;
        for word in &mut header.features {
            *word = fields.u64()?;
        }
        Some(header)
    }

    fn has(&self, feature: u32) -> bool {
        self.features[feature as usize / 64] >> (feature % 64) & 1 == 1
    }
}

/// What is known besides the records.
#[derive(Debug, Default)]
pub(crate) struct Features {
    event_desc: Vec<u8>,
    build_ids: Vec<u8>,
    host: Option<String>,
    release: Option<String>,
    /// Whether they do not follow the records, as the header says they do.
    pub(super) is_misplaced: bool,
}

/// Reads those of a file; none when it has none or is no such file.
pub(crate) fn features_of_file<R: Read + Seek>(file: &mut R) -> Features {
    try_features(file).unwrap_or_default()
}

fn try_features<R: Read + Seek>(file: &mut R) -> Option<Features> {
    let mut start = [0; HEADER_SIZE];
    file.seek(SeekFrom::Start(0)).ok()?;
    file.read_exact(&mut start).ok()?;
    if !start.starts_with(b"PERFILE2") {
        return None;
    }
    let header = FileHeader::parse(&start).ok()?;
    // perf that was killed leaves no size, and wrote nothing behind the records.
    let has_size = header.data.size > 0;
    let table_at = header.data.offset.checked_add(header.data.size)?;
    let mut features = Features::default();
    let set = (0..N_FEATURES).filter(|feature| header.has(*feature));
    let table_end = table_at.checked_add(set.clone().count() as u64 * 16)?;
    let file_end = file.seek(SeekFrom::End(0)).ok()?;
    for (at, feature) in set.enumerate() {
        let entry = table_at.checked_add(at as u64 * 16)?;
        let section = Section::parse(&mut Fields(&read_at(file, entry, 16)?))?;
        let end = section.offset.saturating_add(section.size);
        let is_empty = section.size == 0;
        features.is_misplaced |=
            has_size && !is_empty && (section.offset < table_end || end > file_end);
        if !matches!(feature, BUILD_ID | HOSTNAME | OSRELEASE | EVENT_DESC) {
            continue;
        }
        if let Some(bytes) = read_at(file, section.offset, section.size) {
            features.set(feature, bytes);
        }
    }
    Some(features)
}

fn read_at<R: Read + Seek>(file: &mut R, at: u64, size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at)).ok()?;
    let is_bounded = size <= MAX_FEATURE;
    file.take(size).read_to_end(&mut bytes).ok()?;
    (is_bounded && bytes.len() as u64 == size).then_some(bytes)
}

impl Features {
    fn set(&mut self, feature: u32, bytes: Vec<u8>) {
        match feature {
            BUILD_ID => self.build_ids = bytes,
            HOSTNAME => self.host = counted_text(&bytes),
            OSRELEASE => self.release = counted_text(&bytes),
            EVENT_DESC => self.event_desc = bytes,
            _ => {}
        }
    }

    /// The node that was recorded, and the release of its kernel.
    pub(super) fn origin(&self) -> (Option<&str>, Option<&str>) {
        (self.host.as_deref(), self.release.as_deref())
    }

    /// Takes one that comes as a record of its own, in pipe mode.
    pub(super) fn take(&mut self, mut record: Fields<'_>) {
        if let Some(feature) = record.u64().and_then(|n| u32::try_from(n).ok()) {
            self.set(feature, record.0.to_vec());
        }
    }

    /// Names the events.
    pub(super) fn name_events(&self, attrs: &mut Attrs) {
        // Cut short or not, names that were read hold.
        let _ = self.try_name_events(attrs);
    }

    fn try_name_events(&self, attrs: &mut Attrs) -> Option<()> {
        let mut fields = Fields(&self.event_desc);
        let (n_events, attr_size) = (fields.u32()?, fields.u32()? as usize);
        for at in 0..n_events {
            fields.bytes(attr_size)?;
            let n_ids = fields.u32()?;
            let len = fields.u32()? as usize;
            let name = Fields(fields.bytes(len)?).text();
            attrs.rename_at(at as usize, name);
            for _ in 0..n_ids {
                let id = fields.u64()?;
                attrs.rename(id, name);
            }
        }
        Some(())
    }

    /// Files and what identifies their contents.
    pub(super) fn build_ids(&self) -> Vec<(&[u8], &[u8])> {
        const HAS_SIZE: u16 = 1 << 15;
        let mut ids = Vec::new();
        let mut rest = Fields(&self.build_ids);
        while let Some((_, misc, size)) = header(&mut rest) {
            let Some(mut entry) = size.checked_sub(8).and_then(|n| rest.bytes(n)).map(Fields)
            else {
                break;
            };
            let id = entry.u32().and_then(|_| entry.bytes(24));
            let Some(id) = id else { break };
            let len = if misc & HAS_SIZE == 0 {
                20
            } else {
                usize::from(id[20]).min(20)
            };
            ids.push((entry.text(), &id[..len]));
        }
        ids
    }
}

/// A text that has its length before it and zeros behind it.
fn counted_text(bytes: &[u8]) -> Option<String> {
    let mut fields = Fields(bytes);
    let len = fields.u32()?;
    let text = Fields(fields.bytes(usize::try_from(len).ok()?)?).text();
    String::from_utf8(text.to_vec()).ok()
}

/// Kind, flags and size of a record.
pub(super) fn header(fields: &mut Fields<'_>) -> Option<(u32, u16, usize)> {
    let kind = fields.u32()?;
    let misc = fields.u16()?;
    let size = fields.u16()?;
    Some((kind, misc, usize::from(size)))
}
