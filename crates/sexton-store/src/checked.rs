//! A Parquet file in the making: every byte is counted before it is written, and every row
//! group gets a checksum.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::TypePtr;
use serde::{Deserialize, Serialize};

use crate::crc::crc32c;
use crate::error::StoreError;
use crate::ledger::Shared;

/// In the file's metadata: the row groups and their CRC-32C, and a CRC-32C of all that.
/// Parquet's own page checksums are optional, and the library does not write them.
pub(crate) const CHECKSUMS: &str = "sexton.crc32c";

/// What is known of a row group apart from the footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checked {
    pub(crate) end: u64,
    /// Of all bytes since the group before.
    pub(crate) crc: u32,
    /// Of the places of its columns.
    pub(crate) layout_crc: u32,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// The checksum of where the columns of a row group are.
pub(crate) fn layout_crc(group: &RowGroupMetaData) -> u32 {
    group.columns().iter().fold(0, |crc, column| {
        let (start, length) = column.byte_range();
        let crc = crc32c(crc, &start.to_le_bytes());
        crc32c(crc, &length.to_le_bytes())
    })
}

/// A file that makes room before it grows.
pub(crate) struct Metered<'a> {
    ledger: &'a Shared,
    file: (&'a File, &'a Path),
    at: u64,
    crc: u32,
    failed: Option<StoreError>,
}

impl Write for Metered<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.ledger.lock().write_at(self.file, self.at, bytes) {
            let text = error.to_string();
            self.failed = Some(error);
            return Err(io::Error::other(text));
        }
        self.crc = crc32c(self.crc, bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file and the checksums of what it holds so far.
pub(crate) struct CheckedWriter<'a> {
    writer: SerializedFileWriter<Metered<'a>>,
    path: &'a Path,
    checksums: Vec<Checked>,
}

impl<'a> CheckedWriter<'a> {
    pub(crate) fn new(
        ledger: &'a Shared,
        file: (&'a File, &'a Path),
        schema: Result<TypePtr, ParquetError>,
        properties: Result<WriterProperties, ParquetError>,
    ) -> Result<Self, StoreError> {
        let seal = |source| StoreError::Seal {
            path: file.1.to_owned(),
            source,
        };
        let metered = Metered {
            ledger,
            file,
            at: 0,
            crc: 0,
            failed: None,
        };
        let properties = Arc::new(properties.map_err(seal)?);
        let schema = schema.map_err(seal)?;
        Ok(Self {
            writer: SerializedFileWriter::new(metered, schema, properties).map_err(seal)?,
            path: file.1,
            checksums: Vec::new(),
        })
    }

    /// Adds a row group that spans these moments; `fill` writes all its columns.
    pub(crate) fn group(
        &mut self,
        span_ns: (u64, u64),
        fill: impl FnOnce(&mut SerializedRowGroupWriter<'_, Metered<'a>>) -> Result<(), ParquetError>,
    ) -> Result<(), StoreError> {
        let done = self.try_group(span_ns, fill);
        done.map_err(|error| self.explain(error))
    }

    fn try_group(
        &mut self,
        (from_ns, to_ns): (u64, u64),
        fill: impl FnOnce(&mut SerializedRowGroupWriter<'_, Metered<'a>>) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        fill(&mut group)?;
        let group = group.close()?;
        self.writer.flush()?;
        let sink = self.writer.inner_mut();
        self.checksums.push(Checked {
            end: sink.at,
            crc: std::mem::take(&mut sink.crc),
            layout_crc: layout_crc(&group),
            from_ns,
            to_ns,
        });
        Ok(())
    }

    /// Adds a text to the file's metadata.
    pub(crate) fn note(&mut self, key: &str, text: String) {
        let note = KeyValue::new(key.to_owned(), text);
        self.writer.append_key_value_metadata(note);
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let text =
            serde_json::to_string(&self.checksums).expect("numbers can always be written as JSON");
        let text = format!("{:08x} {text}", crc32c(0, text.as_bytes()));
        self.note(CHECKSUMS, text);
        let done = self.writer.finish();
        done.map_err(|error| self.explain(error)).map(|_| ())
    }

    /// What really went wrong, when the library only passes on that something did.
    fn explain(&mut self, source: ParquetError) -> StoreError {
        let failed = self.writer.inner_mut().failed.take();
        failed.unwrap_or_else(|| StoreError::Seal {
            path: self.path.to_owned(),
            source,
        })
    }
}
