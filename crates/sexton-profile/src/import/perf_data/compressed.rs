//! Records packed with zstd: one stream over all packed records of a recording.

use std::io;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Unpacked at a time.
const CHUNK: usize = 1 << 20;

/// Unpacks.
pub(super) struct Unpacker {
    decoder: Decoder<'static>,
    /// What was unpacked and not yet used: at most a chunk and a part of a record.
    bytes: Vec<u8>,
}

impl Unpacker {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            decoder: Decoder::new()?,
            bytes: Vec::new(),
        })
    }

    /// Unpacks more of `packed`: what is left of it. Look at [`Self::bytes`] after each
    /// call, until nothing is left and nothing new came.
    pub(super) fn step<'a>(&mut self, packed: &'a [u8]) -> io::Result<(&'a [u8], bool)> {
        let old_len = self.bytes.len();
        self.bytes.resize(old_len + CHUNK, 0);
        let mut input = InBuffer::around(packed);
        let mut output = OutBuffer::around(&mut self.bytes[old_len..]);
        let result = self.decoder.run(&mut input, &mut output);
        let (n_read, n_written) = (input.pos(), output.pos());
        self.bytes.truncate(old_len + n_written);
        result?;
        Ok((&packed[n_read.min(packed.len())..], n_written == CHUNK))
    }

    /// What was unpacked.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Marks the first `n` bytes as used.
    pub(super) fn consume(&mut self, n: usize) {
        self.bytes.drain(..n.min(self.bytes.len()));
    }
}
