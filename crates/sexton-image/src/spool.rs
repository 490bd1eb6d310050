//! Where the content of compressed files is kept while an image is open: a nameless file
//! on disk, so that memory stays small, and bounded, so that a bomb fills no disk.

use std::fs;
use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::bytes::{FileBytes, Shared};

/// All content together.
///
/// Chosen: more than the largest images of GPU fleets hold in small files. What comes
/// later is known by name only, which is a gap.
const SPOOL_BYTES_MAX: u64 = 8 << 30;

/// Of a longer file only its beginning is kept: an interpreter line is there.
const FILE_BYTES_MAX: u64 = 256 << 20;
const HEAD_BYTES: u64 = 64 << 10;

/// A file that grows, and can be read once it is done.
#[derive(Debug)]
pub(crate) struct Spool {
    file: io::BufWriter<fs::File>,
    len: u64,
}

impl Spool {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            file: io::BufWriter::with_capacity(256 << 10, tempfile::tempfile()?),
            len: 0,
        })
    }

    /// Keeps what there is room for of the next `size_bytes`; `whole` asks for all of it
    /// however long. Says where it is and how much of it.
    pub(crate) fn keep(
        &mut self,
        content: &mut dyn Read,
        size_bytes: u64,
        whole: bool,
    ) -> io::Result<(u64, u64)> {
        let wanted = if whole || size_bytes <= FILE_BYTES_MAX {
            size_bytes
        } else {
            HEAD_BYTES
        };
        let room = SPOOL_BYTES_MAX.saturating_sub(self.len);
        let from = self.len;
        let kept = io::copy(&mut content.take(wanted.min(room)), &mut self.file)?;
        self.len += kept;
        Ok((from, kept))
    }

    pub(crate) fn finish(self) -> io::Result<Shared> {
        let mut file = self.file;
        file.flush()?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Arc::new(FileBytes::new(file)?))
    }
}
