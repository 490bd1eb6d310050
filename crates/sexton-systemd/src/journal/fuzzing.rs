//! The door for a fuzz target.

use std::io;

use super::{Bytes, Header, WRITER};

struct Slice<'a>(&'a [u8]);

impl Bytes for Slice<'_> {
    fn at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let until = from.checked_add(len).ok_or(io::ErrorKind::UnexpectedEof)?;
        let found = self.0.get(from..until);
        Ok(found.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
    }
}

/// The units of a journal's file, and how many entries of each can be followed.
pub fn journal_file(content: &[u8]) -> Vec<(String, usize)> {
    let bytes = Slice(content);
    let read = || -> io::Result<Vec<(String, usize)>> {
        let header = Header::read(&bytes)?;
        let Some(field) = header.field(&bytes, WRITER)? else {
            return Ok(Vec::new());
        };
        let units = header.values(&bytes, (field, WRITER), &|_| false)?;
        let mut all = Vec::new();
        for unit in units {
            let written = header.last(&bytes, &unit, 128)?;
            let n = written.len();
            for entry in written {
                header.texts(&bytes, &entry, &["MESSAGE"])?;
            }
            all.push((unit.value, n));
        }
        Ok(all)
    };
    read().unwrap_or_default()
}
