//! Doors for the fuzz targets: what a bundle's files might hold goes the way that a reader
//! takes it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::ledger::Segment;
use crate::meta::Meta;
use crate::pack;
use crate::sealed::{self, Sealed};
use crate::wal::{self, Decoder, Log};

/// How many records a log has; both readings of it must agree.
pub fn log(file: File) -> io::Result<usize> {
    let Some(mut log) = Log::scan(file)? else {
        return Ok(0);
    };
    let mut n_records = 0;
    for block in log.blocks.clone() {
        let rows = log.rows(&block)?;
        assert_eq!(rows.len(), block.n_records);
        n_records += rows.len();
    }
    log.into_writer();
    Ok(n_records)
}

/// A log whose batches hold these payloads as far as they can be read, with checksums that
/// fit.
pub fn log_of(payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = wal::file_header(1).to_vec();
    let mut decoder = Decoder::default();
    for (i, payload) in payloads.iter().enumerate() {
        let begins_block = i % 2 == 0;
        if begins_block {
            decoder.begin_block();
        }
        let mut rows = Vec::new();
        let payload = &payload[..payload.len().min(wal::MAX_BATCH_BYTES)];
        let fits = decoder.batch(payload, true, &mut rows).is_ok();
        let n_records = rows.len().min(usize::from(u16::MAX));
        bytes.extend(wal::frame(payload, n_records, begins_block));
        if !fits {
            break;
        }
    }
    bytes
}

/// Reads a sealed segment, with and without its checksums.
pub fn segment(file: File) -> io::Result<usize> {
    let copy = file.try_clone()?;
    let mut n_records = 0;
    if let Ok(sealed) = Sealed::of(file) {
        let rows = sealed.groups.iter().map(|group| sealed.rows(group));
        n_records += rows.flatten().map(|rows| rows.len()).sum::<usize>();
    }
    Ok(n_records + sealed::read_unchecked(copy).unwrap_or(0))
}

/// Reads a `bundle.json` and, from the same bytes, the name of a segment.
pub fn small_files(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    if let Some(segment) = Segment::parse(&text, 0) {
        assert_eq!(
            Segment::parse(&segment.file_name(), 0).as_ref(),
            Some(&segment)
        );
    }
    Meta::parse(Path::new("bundle"), bytes).is_ok()
}

/// Reads a packed bundle, and gives the names that its files would have in a folder.
pub fn packed(bytes: &[u8]) -> Vec<PathBuf> {
    let mut names = Vec::new();
    // Its error says what is wrong with it, and nothing else.
    let _ = pack::read_all(bytes, 1 << 20, &mut |name, content| {
        names.push(name.to_owned());
        io::copy(content, &mut io::sink()).map(drop)
    });
    names
}

/// A tar archive as a packed bundle, for those whose bytes are not compressed.
pub fn pack_tar(tar: &[u8]) -> io::Result<Vec<u8>> {
    zstd::encode_all(tar, 1)
}
