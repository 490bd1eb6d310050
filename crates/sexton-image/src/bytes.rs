//! Bytes that can be read at any place: a file, a part of one, or what a disk format
//! makes of it.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Something that holds a fixed number of bytes.
pub trait Bytes: Send + Sync {
    /// How many there are.
    fn len(&self) -> u64;

    /// Fills the front of `buffer` from `offset` on, and says how much: less than all of it
    /// only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills the whole buffer, or fails.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if self.read_at(offset, buffer)? < buffer.len() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "ends before byte {}",
                    offset.saturating_add(buffer.len() as u64)
                ),
            ));
        }
        Ok(())
    }
}

/// Any bytes, shared.
pub type Shared = Arc<dyn Bytes>;

/// A file on this machine.
#[derive(Debug)]
pub struct FileBytes {
    file: fs::File,
    len: u64,
}

impl FileBytes {
    /// Takes the file as long as it is now.
    pub fn new(file: fs::File) -> io::Result<Self> {
        // A block device says 0 bytes; its end is where seeking ends.
        let len = io::Seek::seek(&mut &file, io::SeekFrom::End(0))?;
        Ok(Self { file, len })
    }
}

impl Bytes for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl Bytes for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.get(from..).unwrap_or_default();
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

/// A part of other bytes.
pub struct Part {
    whole: Shared,
    from: u64,
    len: u64,
}

impl Part {
    /// What lies beyond the end of the whole is cut off.
    pub fn new(whole: Shared, from: u64, len: u64) -> Self {
        let from = from.min(whole.len());
        let len = len.min(whole.len() - from);
        Self { whole, from, len }
    }
}

impl Bytes for Part {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let n = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if n == 0 {
            return Ok(0);
        }
        self.whole.read_at(self.from + offset, &mut buffer[..n])
    }
}

/// Bytes from the first on, for what reads a stream.
pub struct Cursor {
    bytes: Shared,
    at: u64,
}

impl Cursor {
    /// Begins at the first byte.
    pub fn new(bytes: Shared) -> Self {
        Self { bytes, at: 0 }
    }
}

impl io::Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read_at(self.at, buffer)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_where_the_whole_ends() {
        let whole: Shared = Arc::new(b"0123456789".to_vec());
        let check = |from, len, offset, expected: &[u8]| {
            let part = Part::new(Arc::clone(&whole), from, len);
            let mut buffer = [0; 4];
            let n = part.read_at(offset, &mut buffer).expect("memory");
            assert_eq!(&buffer[..n], expected);
        };
        check(2, 3, 0, b"234");
        check(2, 3, 2, b"4");
        check(2, 3, 3, b"");
        check(8, u64::MAX, 0, b"89");
        check(u64::MAX, u64::MAX, u64::MAX, b"");
    }
}
