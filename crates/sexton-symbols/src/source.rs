//! Bytes that are read here and there, in pieces.

use std::io;

use object::pod::{self, Pod};
use sexton_host::code::CodeFile;

/// Something that can be read at any offset.
pub trait Source {
    /// Reads as many bytes as there are.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Source for CodeFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        CodeFile::read_at(self, bytes, offset)
    }
}

impl Source for Vec<u8> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
        let rest = rest.unwrap_or_default();
        let n = rest.len().min(bytes.len());
        bytes[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(bytes, offset)
    }
}

/// What is read at once of a table.
const PIECE_BYTES: usize = 48 << 10;

/// One record of a file.
pub(crate) fn one<T: Pod>(source: &dyn Source, offset: u64) -> Option<T> {
    let mut found = None;
    each(source, offset, 1, |record: &T| {
        found = Some(*record);
        true
    });
    found
}

/// Hands over records of a table, piece by piece, until one is refused or the file ends.
pub(crate) fn each<T: Pod>(
    source: &dyn Source,
    offset: u64,
    n: u64,
    mut take: impl FnMut(&T) -> bool,
) {
    let size = size_of::<T>();
    let at_once = (PIECE_BYTES / size) as u64;
    let mut bytes = vec![0; size * at_once.min(n) as usize];
    let mut done = 0;
    while done < n {
        let wanted = at_once.min(n - done) as usize * size;
        let Some(at) = offset.checked_add(done * size as u64) else {
            return;
        };
        let Ok(got) = source.read_at(&mut bytes[..wanted], at) else {
            return;
        };
        let Ok((records, _)) = pod::slice_from_bytes::<T>(&bytes[..got], got / size) else {
            return;
        };
        if !records.iter().all(&mut take) || got < wanted {
            return;
        }
        done += at_once;
    }
}

/// At most `limit` bytes of a part of a file.
pub(crate) fn part(source: &dyn Source, offset: u64, size: u64, limit: usize) -> Option<Vec<u8>> {
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(limit);
    let mut bytes = vec![0; size];
    let n = source.read_at(&mut bytes, offset).ok()?;
    bytes.truncate(n);
    Some(bytes)
}

/// The text that begins at an offset and ends at a zero byte, cut at `limit`.
pub(crate) fn text(source: &dyn Source, offset: u64, limit: usize) -> Option<Vec<u8>> {
    // Most names are short, and every read is a system call.
    const FIRST: usize = 256;
    for room in [FIRST.min(limit), limit] {
        let bytes = part(source, offset, u64::MAX, room)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        if end.is_some() || bytes.len() < room || room == limit {
            return Some(bytes[..end.unwrap_or(bytes.len())].to_vec());
        }
    }
    None
}

/// Hands over the lines of a text, up to `limit` bytes of it.
pub(crate) fn each_line(
    source: &dyn Source,
    limit: u64,
    mut take: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut rest = Vec::new();
    let mut at = 0;
    while at < limit {
        let n = source.read_at(&mut piece, at)?;
        if n == 0 {
            break;
        }
        at += n as u64;
        let mut bytes = &piece[..n];
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            if rest.is_empty() {
                take(&bytes[..end]);
            } else {
                rest.extend_from_slice(&bytes[..end]);
                take(&rest);
                rest.clear();
            }
            bytes = &bytes[end + 1..];
        }
        rest.extend_from_slice(bytes);
    }
    if !rest.is_empty() {
        take(&rest);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_from_any_piece() {
        let text: Vec<u8> = (0..40_000)
            .flat_map(|n| format!("{n}\n").into_bytes())
            .chain(*b"last")
            .collect();
        let mut lines = Vec::new();
        each_line(&text, u64::MAX, |line| lines.push(line.to_vec())).expect("memory");
        assert_eq!(lines.len(), 40_001);
        let expected = |n: usize| n.to_string().into_bytes();
        assert!((0..40_000).all(|n| lines[n] == expected(n)));
        assert_eq!(lines[40_000], b"last");
    }

    #[test]
    fn names_of_any_length() {
        let mut bytes = vec![b'x'; 300];
        bytes.push(0);
        assert_eq!(text(&bytes, 290, 4096), Some(vec![b'x'; 10]));
        assert_eq!(text(&bytes, 0, 4096), Some(vec![b'x'; 300]));
        assert_eq!(text(&bytes, 0, 20), Some(vec![b'x'; 20]));
        assert_eq!(text(&bytes, 1000, 20), Some(vec![]));
    }
}
