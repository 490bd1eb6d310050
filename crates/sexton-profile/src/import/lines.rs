//! Text, line by line, with a bound on how long a line may be.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter};

use super::bytes::Window;

/// A longer line is no line of a profile.
const MAX_LINE: usize = 1 << 20;

/// Lines of a stream, without their ends.
pub(crate) struct Lines<R> {
    window: Window<R>,
    number: u64,
    /// What the last line took, its end included.
    used: usize,
}

/// Why there is no next line.
pub(crate) enum NoLine {
    /// The text ended.
    End,
    /// It cannot be read on.
    Failed(String),
}

impl From<io::Error> for NoLine {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("cannot read on: {error}"))
    }
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(window: Window<R>) -> Self {
        Self::after(window, 0)
    }

    /// Lines that so many others come before.
    pub(crate) fn after(window: Window<R>, n_before: u64) -> Self {
        Self {
            window,
            number: n_before,
            used: 0,
        }
    }

    /// What it reads from.
    pub(crate) fn into_window(self) -> Window<R> {
        self.window
    }

    /// The number of the last line, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line.
    pub(crate) fn next(&mut self) -> Result<&[u8], NoLine> {
        self.window.consume(std::mem::take(&mut self.used));
        let mut searched = 0;
        let len = loop {
            let unused = self.window.unused();
            if let Some(at) = memchr(b'\n', &unused[searched..]) {
                break searched + at;
            }
            searched = unused.len();
            if searched > MAX_LINE {
                self.number += 1;
                return Err(NoLine::Failed(format!(
                    "it is longer than {MAX_LINE} bytes"
                )));
            }
            if !self.window.fill()? {
                break searched;
            }
        };
        if len == 0 && self.window.unused().is_empty() {
            return Err(NoLine::End);
        }
        self.number += 1;
        self.used = len + 1;
        Ok(&self.window.unused()[..len])
    }

    /// All that is there of the block of lines up to the next empty line, if that line is
    /// there too: the bytes without the empty line, and how many lines they are.
    ///
    /// Only a short cut: `None` means to go on line by line, as when there may be a line of
    /// blanks, which ends a block as well.
    pub(crate) fn rest_of_block(&mut self) -> Option<(&[u8], u64)> {
        let rest = self.window.unused().get(self.used..)?;
        if rest.first() == Some(&b'\n') {
            return Some((&[], 0));
        }
        let end = memchr::memmem::find(rest, b"\n\n")?;
        let block = rest.get(..=end)?;
        let mut n_lines = 0;
        for end in memchr_iter(b'\n', block) {
            if block[..end].last().is_some_and(u8::is_ascii_whitespace) {
                return None;
            }
            n_lines += 1;
        }
        Some((block, n_lines))
    }

    /// Passes over such a block of `len` bytes and `n_lines` lines.
    pub(crate) fn pass(&mut self, len: usize, n_lines: u64) {
        self.used += len;
        self.number += n_lines;
    }
}
