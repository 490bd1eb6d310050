//! Cuts text into pieces of whole samples: behind an empty line nothing is left of what was
//! before it.

use std::io::{self, Read};

use memchr::memmem;

/// What a piece has, about: enough that giving it to a thread costs nothing beside it.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// Text without an empty line for this many pieces is not cut.
const MAX_PIECES: usize = 8;

/// Some of the text.
pub(super) enum Cut {
    /// It ends with an empty line, and more follows.
    Piece(Vec<u8>),
    /// It is the last, or cannot be cut; what follows is to be read from the cutter itself.
    Rest(Vec<u8>),
}

/// Text that is cut.
pub(super) struct Cutter<R> {
    reader: R,
    piece_bytes: usize,
    /// What was read behind the last cut.
    tail: Vec<u8>,
    failed: Option<io::Error>,
}

impl<R: Read> Cutter<R> {
    pub(super) fn new(reader: R, piece_bytes: usize) -> Self {
        Self {
            reader,
            piece_bytes: piece_bytes.max(1),
            tail: Vec::new(),
            failed: None,
        }
    }

    /// The next piece; it takes the room of `text`.
    pub(super) fn next(&mut self, mut text: Vec<u8>) -> Cut {
        text.clear();
        text.append(&mut self.tail);
        for n_pieces in 1..=MAX_PIECES {
            let wanted = (n_pieces * self.piece_bytes).saturating_sub(text.len());
            let more = self.reader.by_ref().take(wanted as u64);
            let read = { more }.read_to_end(&mut text);
            match read {
                Ok(n) if n == wanted => {}
                Ok(_) => return Cut::Rest(text),
                Err(error) => {
                    self.failed = Some(error);
                    return Cut::Rest(text);
                }
            }
            if let Some(at) = memmem::rfind(&text, b"\n\n") {
                self.tail = text.split_off(at + 2);
                return Cut::Piece(text);
            }
        }
        Cut::Rest(text)
    }

    /// What was read and is in no piece.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.tail)
    }
}

/// What follows all that was cut.
impl<R: Read> Read for Cutter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.reader.read(buffer),
        }
    }
}
