//! perf.data: what `perf record` writes.
//!
//! The layout is the kernel's `include/uapi/linux/perf_event.h` and
//! `tools/perf/Documentation/perf.data-file-format.txt`. Read here: files and pipe mode,
//! records packed with zstd, several events, times out of order as far as perf allows,
//! threads, memory maps, cgroups, build-ids, BPF programs, lost records.

mod attr;
mod chains;
mod compressed;
mod features;
mod feed;
mod fields;
mod group;
mod machine;
mod maps;
mod order;
mod parts;
mod reader;
mod sample;
mod shape;
mod sorter;
mod stacks;
mod unwind;

use std::io::Read;

pub(crate) use features::{Features, features_of_file};
pub(crate) use machine::Machine;

use super::bytes::Window;
use super::{Format, ImportError, Importer, Position, Report};
use attr::Attrs;
use reader::Reader;

/// Numbers of records: those of the kernel, then those of perf's own.
mod kind {
    pub(super) const MMAP: u32 = 1;
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const KSYMBOL: u32 = 17;
    pub(super) const CGROUP: u32 = 19;
    /// From here on records are perf's own and have no time.
    pub(super) const FIRST_OF_PERF: u32 = 64;
    pub(super) const HEADER_ATTR: u32 = 64;
    pub(super) const HEADER_TRACING_DATA: u32 = 66;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const EVENT_UPDATE: u32 = 78;
    pub(super) const HEADER_FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

/// The header of a file is 104 bytes, and what lies before the records is at most this.
const MAX_PREFIX: u64 = 64 << 20;

/// Reads a file or a stream that begins with perf's magic, and streams of records that belong
/// to it.
pub(super) fn read<R: Read + Send>(
    importer: &mut Importer<'_>,
    format: Format,
    mut window: Window<R>,
    parts: Vec<Window<R>>,
    features: Features,
) -> Result<Report, ImportError> {
    if format == Format::PerfPipe {
        window.consume(16);
        let reader = Reader::new(importer, Attrs::default(), Report::new(format));
        return Ok(reader.run(window, parts, features, None));
    }
    let header = window
        .up_to(features::HEADER_SIZE)
        .map_err(ImportError::Read)?;
    let header = features::FileHeader::parse(header)?;
    if header.data.offset > MAX_PREFIX {
        return Err(ImportError::Header("its records begin too far in"));
    }
    let prefix_len = usize::try_from(header.data.offset).unwrap_or(usize::MAX);
    let prefix = window.up_to(prefix_len).map_err(ImportError::Read)?;
    let prefix = prefix
        .get(..prefix_len)
        .ok_or(ImportError::Header("it ends before its records begin"))?;
    let attrs = Attrs::of_file(prefix, &header)?;
    window.consume(prefix_len);
    // perf writes the size last: a zero means that it was killed before.
    let end = header.data.offset.saturating_add(header.data.size);
    let end = (header.data.size > 0).then_some(end);
    let is_misplaced = features.is_misplaced;
    let reader = Reader::new(importer, attrs, Report::new(format));
    let mut report = reader.run(window, parts, features, end);
    if is_misplaced {
        let why = "what follows the records is not where the header says: the header is damaged";
        report.stop(Position::Byte(end.unwrap_or(0)), why);
    }
    Ok(report)
}
