//! Asks a daemon on a Unix socket one thing, within a time and a size.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use sexton_host::socket;
use sexton_model::gap::Why;

use super::http::{self, Body, HEAD_LIMIT_BYTES, HttpError};
use super::http2::Http2Error;

/// The largest answer that is kept whole.
///
/// Chosen: a container takes about 800 bytes of the list, so this is 10,000 of them.
pub(super) const ANSWER_LIMIT_BYTES: usize = 8 << 20;

/// Codes of gRPC that mean more than "no".
const PERMISSION_DENIED: u32 = 7;
const UNAVAILABLE: u32 = 14;

/// Why a daemon told us nothing, or stopped telling.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    #[error("no answer within {0:.1?}")]
    Silent(Duration),
    #[error("it ended the connection")]
    Ended,
    #[error("it refused with status {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("it declined with gRPC status {code}: {message}")]
    Declined { code: u32, message: String },
    #[error("its answer is over {ANSWER_LIMIT_BYTES} bytes")]
    TooLarge,
    #[error("its answer is no HTTP")]
    NoHttp(#[source] HttpError),
    #[error("its answer is no HTTP/2")]
    NoHttp2(#[source] Http2Error),
    #[error("its answer makes no sense: {0}")]
    Malformed(String),
}

impl Trouble {
    /// The sort of gap this leaves.
    pub(super) fn why(&self) -> Why {
        match self {
            Self::Connect(error) if error.kind() == io::ErrorKind::PermissionDenied => Why::Denied,
            Self::Connect(_) | Self::Broken(_) | Self::Ended => Why::Vanished,
            Self::Silent(_) => Why::Overrun,
            // It is going away, and says so to those who wait for events.
            Self::Declined {
                code: UNAVAILABLE, ..
            } => Why::Vanished,
            Self::Declined {
                code: PERMISSION_DENIED,
                ..
            } => Why::Denied,
            Self::Refused { .. } | Self::Declined { .. } => Why::Unsupported,
            Self::NoHttp2(Http2Error::Reset(_)) => Why::Vanished,
            Self::TooLarge | Self::NoHttp(_) | Self::NoHttp2(_) | Self::Malformed(_) => {
                Why::Malformed
            }
        }
    }

    /// Of a connection that could not be made in time.
    pub(super) fn connect(error: io::Error, within: Duration) -> Self {
        if is_timeout(&error) {
            Self::Silent(within)
        } else {
            Self::Connect(error)
        }
    }

    /// The trouble and everything behind it, in one line.
    pub(super) fn chain(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

/// What a read of a body brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Got {
    Bytes,
    Nothing,
    End,
}

/// An answer that has begun.
#[derive(Debug)]
pub(super) struct Answer {
    stream: UnixStream,
    body: Body,
    /// What of the body came with the head.
    first: Vec<u8>,
}

/// Asks, and waits at most so long for the head of the answer.
pub(super) fn ask(socket: &Path, target: &str, within: Duration) -> Result<Answer, Trouble> {
    let until = Instant::now() + within;
    let mut stream =
        socket::connect_unix(socket, within).map_err(|error| Trouble::connect(error, within))?;
    stream
        .set_write_timeout(Some(within))
        .map_err(Trouble::Broken)?;
    // A daemon of our own machine asks for no more headers than these.
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: sexton\r\nConnection: close\r\n\r\n"
    );
    stream
        .write_all(request.as_bytes())
        .map_err(|error| broken(error, within))?;
    let mut bytes = Vec::new();
    loop {
        if let Some((head, length)) = http::head(&bytes).map_err(Trouble::NoHttp)? {
            let mut answer = Answer {
                stream,
                body: Body::new(head.framing),
                first: bytes.split_off(length),
            };
            return match head.status {
                200 => Ok(answer),
                status => Err(answer.refusal(status, until)),
            };
        }
        match read(&mut stream, until, HEAD_LIMIT_BYTES, &mut bytes)? {
            Got::Bytes => {}
            Got::Nothing => return Err(Trouble::Silent(within)),
            Got::End => return Err(Trouble::Ended),
        }
    }
}

impl Answer {
    /// All of the body, within this time.
    pub(super) fn whole(mut self, within: Duration) -> Result<Vec<u8>, Trouble> {
        let until = Instant::now() + within;
        let mut out = Vec::new();
        loop {
            match self.more(until, &mut out)? {
                Got::End => return Ok(out),
                Got::Nothing => return Err(Trouble::Silent(within)),
                Got::Bytes if out.len() > ANSWER_LIMIT_BYTES => return Err(Trouble::TooLarge),
                Got::Bytes => {}
            }
        }
    }

    /// More of the body, if any comes until then.
    pub(super) fn more(&mut self, until: Instant, out: &mut Vec<u8>) -> Result<Got, Trouble> {
        let mut bytes = std::mem::take(&mut self.first);
        if self.body.is_done() {
            return Ok(Got::End);
        }
        if bytes.is_empty() {
            match read(&mut self.stream, until, 64 << 10, &mut bytes)? {
                Got::Bytes => {}
                Got::Nothing => return Ok(Got::Nothing),
                Got::End if self.body.may_end() => return Ok(Got::End),
                Got::End => return Err(Trouble::Ended),
            }
        }
        self.body.feed(&bytes, out).map_err(Trouble::NoHttp)?;
        Ok(Got::Bytes)
    }

    /// What the daemon says of its refusal, as far as it says so in time.
    fn refusal(&mut self, status: u16, until: Instant) -> Trouble {
        const ENOUGH_BYTES: usize = 200;
        let mut said = Vec::new();
        while said.len() < ENOUGH_BYTES && matches!(self.more(until, &mut said), Ok(Got::Bytes)) {}
        said.truncate(ENOUGH_BYTES);
        let message = sexton_model::text::escape(said.trim_ascii());
        Trouble::Refused { status, message }
    }
}

/// One read of at most so many bytes, which waits until then and no longer.
pub(super) fn read(
    stream: &mut UnixStream,
    until: Instant,
    limit_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<Got, Trouble> {
    let left = until.saturating_duration_since(Instant::now());
    // A timeout of zero would mean none.
    let left = left.max(Duration::from_millis(1));
    stream
        .set_read_timeout(Some(left))
        .map_err(Trouble::Broken)?;
    let begin = out.len();
    out.resize(begin + limit_bytes, 0);
    let n = stream.read(&mut out[begin..]);
    out.truncate(begin + *n.as_ref().unwrap_or(&0));
    match n {
        Ok(0) => Ok(Got::End),
        Ok(_) => Ok(Got::Bytes),
        Err(error) if is_timeout(&error) => Ok(Got::Nothing),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Got::Nothing),
        Err(error) => Err(Trouble::Broken(error)),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

pub(super) fn broken(error: io::Error, within: Duration) -> Trouble {
    if is_timeout(&error) {
        Trouble::Silent(within)
    } else {
        Trouble::Broken(error)
    }
}
