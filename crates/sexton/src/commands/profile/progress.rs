//! How far reading is, on a terminal.

use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

/// How often the line is renewed.
const BEAT: Duration = Duration::from_millis(100);

/// Reading that takes less is not spoken of.
const PATIENCE: Duration = Duration::from_millis(500);

const BAR: usize = 30;

/// A reader that shows how far it is.
pub struct Counted<R> {
    inner: R,
    name: String,
    size: Option<u64>,
    n_read: u64,
    began: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl<R> Counted<R> {
    /// `size` is what there is to read, where that is known.
    pub fn new(inner: R, name: &str, size: Option<u64>) -> Self {
        Self {
            inner,
            name: sexton_model::text::escape(name.as_bytes()),
            size,
            n_read: 0,
            began: Instant::now(),
            shown: None,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self) {
        if !self.is_terminal || self.began.elapsed() < PATIENCE {
            return;
        }
        if self.shown.is_some_and(|shown| shown.elapsed() < BEAT) {
            return;
        }
        self.shown = Some(Instant::now());
        let mib = self.n_read >> 20;
        let far = match self.size {
            Some(size) if size > 0 => {
                let done = u128::from(self.n_read.min(size)) * BAR as u128 / u128::from(size);
                let done = usize::try_from(done).unwrap_or(BAR);
                format!("[{}{}] ", "#".repeat(done), " ".repeat(BAR - done))
            }
            _ => String::new(),
        };
        // A terminal that does not take it is no reason to stop.
        let _ = write!(io::stderr(), "\r\x1b[K{far}{mib} MiB of {}", self.name);
    }
}

impl<R> Drop for Counted<R> {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.n_read += n as u64;
        self.show();
        Ok(n)
    }
}

impl<R: Seek> Seek for Counted<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.n_read = self.inner.seek(to)?;
        Ok(self.n_read)
    }
}
