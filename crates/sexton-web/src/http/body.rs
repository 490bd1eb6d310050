//! The body of a request, read at the client's pace but not at any pace.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Instant;

use super::{PACE_BYTES, PACE_TIME};

/// The body of a request.
pub(crate) struct Body<'a> {
    stream: &'a TcpStream,
    /// What came together with the head.
    early: &'a [u8],
    left: u64,
    /// When this stretch began, and what came since.
    paced: (Instant, usize),
}

impl<'a> Body<'a> {
    pub(crate) fn new(stream: &'a TcpStream, early: &'a [u8], length: u64) -> Self {
        let early_len = usize::try_from(length).map_or(early.len(), |n| n.min(early.len()));
        Self {
            stream,
            early: &early[..early_len],
            left: length,
            paced: (Instant::now(), 0),
        }
    }

    /// Bytes that have not been read.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.early.is_empty() {
            let n = self.early.len().min(buffer.len());
            buffer[..n].copy_from_slice(&self.early[..n]);
            self.early = &self.early[n..];
            return Ok(n);
        }
        let (began, so_far) = self.paced;
        let Some(time) = PACE_TIME
            .checked_sub(began.elapsed())
            .filter(|t| !t.is_zero())
        else {
            if so_far < PACE_BYTES {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the body comes too slowly",
                ));
            }
            self.paced = (Instant::now(), 0);
            return self.read_some(buffer);
        };
        self.stream.set_read_timeout(Some(time))?;
        let mut stream = self.stream;
        match stream.read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.paced.1 += n;
                Ok(n)
            }
            // The stretch is over; the next turn judges it.
            Err(error) if is_timeout(&error) => self.read_some(buffer),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let n = self.read_some(&mut buffer[..most])?;
        self.left -= n as u64;
        Ok(n)
    }
}
