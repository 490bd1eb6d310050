//! Why a daemon told us nothing, or stopped telling.

use std::error::Error;
use std::io;
use std::time::Duration;

use sexton_model::gap::Why;
use sexton_model::text;

use crate::http::ANSWER_LIMIT_BYTES;

/// Codes of gRPC that mean more than "no".
const PERMISSION_DENIED: i32 = 7;
const UNAVAILABLE: i32 = 14;

/// What is kept of the words of a daemon.
pub(crate) const SAID_BYTES: usize = 200;

/// Why a daemon told us nothing, or stopped telling.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// There is no thread to talk to it on.
    #[error("cannot start the thread that talks to container runtimes")]
    NoThread(#[source] io::Error),
    /// Its socket takes no connection from us.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The connection failed.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// A deadline passed.
    #[error("no answer within {0:.1?}")]
    Silent(Duration),
    /// The connection ended before the answer did.
    #[error("it ended the connection")]
    Ended,
    /// The call ended before the answer did.
    #[error("it ended the call without a status")]
    Unfinished,
    /// The call was ended by the daemon, with an error of HTTP/2.
    #[error("it ended the call with HTTP/2 error {0}")]
    Reset(u32),
    /// It answered with another status of HTTP than 200.
    #[error("it refused with status {status}: {message}")]
    Refused {
        /// The status.
        status: u16,
        /// What it said with it.
        message: String,
    },
    /// It answered with another status of gRPC than OK.
    #[error("it declined with gRPC status {code}: {message}")]
    Declined {
        /// The status.
        code: i32,
        /// What it said with it.
        message: String,
    },
    /// The answer is larger than we take.
    #[error("its answer is over {ANSWER_LIMIT_BYTES} bytes")]
    TooLarge,
    /// It does not speak HTTP/1.
    #[error("its answer is no HTTP: {0}")]
    NoHttp(String),
    /// It does not speak HTTP/2.
    #[error("its answer is no HTTP/2: {0}")]
    NoHttp2(String),
    /// What it says makes no sense.
    #[error("its answer makes no sense: {0}")]
    Malformed(String),
}

impl Trouble {
    /// The sort of gap this leaves.
    pub fn why(&self) -> Why {
        match self {
            Self::Connect(error) if error.kind() == io::ErrorKind::PermissionDenied => Why::Denied,
            Self::Connect(_) | Self::Broken(_) | Self::Ended => Why::Vanished,
            Self::Unfinished | Self::Reset(_) => Why::Vanished,
            Self::Silent(_) | Self::NoThread(_) => Why::Overrun,
            // It is going away, and says so to those who wait for events.
            Self::Declined {
                code: UNAVAILABLE, ..
            } => Why::Vanished,
            Self::Declined {
                code: PERMISSION_DENIED,
                ..
            } => Why::Denied,
            Self::Refused { .. } | Self::Declined { .. } => Why::Unsupported,
            Self::NoHttp(_) | Self::NoHttp2(_) | Self::Malformed(_) | Self::TooLarge => {
                Why::Malformed
            }
        }
    }

    /// The trouble and everything behind it, in one line.
    pub fn chain(&self) -> String {
        text::chain(self)
    }

    /// What went wrong with HTTP, as far as hyper says.
    pub(crate) fn of_http(error: &hyper::Error) -> Self {
        if let Some(error) = find::<h2::Error>(error) {
            return Self::of_http2(error);
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return Self::Ended;
        }
        match find::<io::Error>(error).map(io::Error::kind) {
            Some(io::ErrorKind::UnexpectedEof) => Self::Ended,
            // Frames of a body that make no sense are told so.
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) | None => {
                Self::NoHttp(said(text::chain(error).as_bytes()))
            }
            Some(kind) => Self::Broken(kind.into()),
        }
    }

    fn of_http2(error: &h2::Error) -> Self {
        match (error.get_io().map(io::Error::kind), error.reason()) {
            (Some(io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof), _) => Self::Ended,
            (Some(kind), _) => Self::Broken(kind.into()),
            (None, Some(reason)) if error.is_remote() => Self::Reset(reason.into()),
            _ => Self::NoHttp2(said(error.to_string().as_bytes())),
        }
    }
}

/// The first cause of this type.
pub(crate) fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.find_map(|error| error.downcast_ref())
}

/// The words of a daemon, safe to show.
pub(crate) fn said(words: &[u8]) -> String {
    let end = words.len().min(SAID_BYTES);
    text::escape(words[..end].trim_ascii())
}
