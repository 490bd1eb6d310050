//! xz as a stream to read from, with a bound on the memory of its window.

use std::io::{self, BufRead, Read};

use lzma_rust2::{Action, Status, XzStream};

/// Decodes what `input` holds.
pub(crate) struct Xz<R> {
    input: R,
    stream: XzStream,
    is_done: bool,
}

impl<R: BufRead> Xz<R> {
    /// A window that takes more than `memory_kib` is an error when it comes up.
    pub(crate) fn new(input: R, memory_kib: u32) -> Self {
        Self {
            input,
            stream: XzStream::new_mem_limit(true, memory_kib),
            is_done: false,
        }
    }
}

impl<R: BufRead> Read for Xz<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_done && !buffer.is_empty() {
            let input = self.input.fill_buf()?;
            let at_end = input.is_empty();
            let action = if at_end { Action::Finish } else { Action::Run };
            let result = self
                .stream
                .process(input, buffer, action)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            self.input.consume(result.bytes_consumed);
            self.is_done = result.status == Status::StreamEnd;
            if result.bytes_produced > 0 {
                return Ok(result.bytes_produced);
            }
            if at_end && !self.is_done {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
