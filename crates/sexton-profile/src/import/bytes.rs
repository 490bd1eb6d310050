//! A stream of bytes, looked at through a window that moves forward.

use std::io::{self, Read};

/// How much is asked for at a time.
const CHUNK: usize = 1 << 20;

/// Bytes that were read but not yet used, and where they are in the stream.
pub(crate) struct Window<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    position: u64,
    is_at_end: bool,
}

impl Window<io::Empty> {
    /// Bytes that are all there.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        Self {
            buffer: bytes,
            is_at_end: true,
            ..Self::new(io::empty())
        }
    }

    /// These bytes again.
    pub(crate) fn into_whole(self) -> Vec<u8> {
        self.buffer
    }
}

impl<R: Read> Window<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            position: 0,
            is_at_end: false,
        }
    }

    /// Where in the stream the next unused byte is.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// What is there and not yet used.
    pub(crate) fn unused(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// At least `n` bytes, or all there are when the stream ends before.
    pub(crate) fn up_to(&mut self, n: usize) -> io::Result<&[u8]> {
        while self.unused().len() < n && !self.is_at_end {
            self.fill()?;
        }
        Ok(self.unused())
    }

    /// Reads some more; `false` when there is no more.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let len = self.buffer.len();
        self.buffer.resize(len + CHUNK, 0);
        let read = loop {
            match self.reader.read(&mut self.buffer[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        self.is_at_end = matches!(read, Ok(0) | Err(_));
        Ok(read? > 0)
    }

    /// Marks `n` bytes as used; at most those that are there.
    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.unused().len());
        self.start += n;
        self.position += n as u64;
    }

    /// Passes over `n` bytes, however many they are; `false` when the stream ends before.
    pub(crate) fn skip(&mut self, mut n: u64) -> io::Result<bool> {
        loop {
            let here = self.unused().len() as u64;
            let step = here.min(n);
            self.consume(usize::try_from(step).unwrap_or(usize::MAX));
            n -= step;
            if n == 0 {
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    /// The stream from its first unused byte on.
    pub(crate) fn into_reader(self) -> impl Read + use<R> {
        let mut unused = io::Cursor::new(self.buffer);
        unused.set_position(self.start as u64);
        unused.chain(self.reader)
    }
}
