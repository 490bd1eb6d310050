//! The body of a request, read at the client's pace but not at any pace.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use hyper::body::{Body as _, Bytes, Incoming};
use tokio::time::{Instant, timeout_at};

use super::{PACE_BYTES, PACE_TIME};

/// A body that was not read is passed over when it is no longer than this; otherwise the
/// connection is closed.
const MAX_PASSED_OVER: u64 = 64 << 10;

/// The body of a request.
pub(crate) struct Body {
    incoming: Incoming,
    left: u64,
    /// When this stretch began, and what came since.
    paced: (Instant, usize),
}

impl Body {
    pub(super) fn new(incoming: Incoming, length: u64) -> Self {
        Self {
            incoming,
            left: length,
            paced: (Instant::now(), 0),
        }
    }

    /// The next bytes; `None` after the last.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        while self.left > 0 {
            let bytes = self.read_some().await?;
            if !bytes.is_empty() {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    async fn read_some(&mut self) -> io::Result<Bytes> {
        loop {
            let (began, so_far) = self.paced;
            let frame = poll_fn(|cx| Pin::new(&mut self.incoming).poll_frame(cx));
            match timeout_at(began + PACE_TIME, frame).await {
                Ok(Some(Ok(frame))) => {
                    let bytes = frame.into_data().unwrap_or_default();
                    self.paced.1 += bytes.len();
                    return Ok(bytes);
                }
                Ok(Some(Err(error))) => return Err(io::Error::other(error)),
                Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(_) if so_far < PACE_BYTES => {
                    let why = "the body comes too slowly";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Err(_) => self.paced = (Instant::now(), 0),
            }
        }
    }

    /// Reads what is left of a short body; says whether nothing is left then.
    pub(super) async fn pass_over(&mut self) -> bool {
        while self.left <= MAX_PASSED_OVER {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}
