//! What can go wrong between us and a manager.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use sexton_model::gap::Why;

/// Why a manager could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// There is no connection.
    #[error("cannot connect to {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another user than its owner serves the socket.
    #[error("{} is not served by user {user}, whose it is: nothing was asked", path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Who should serve it.
        user: u32,
    },
    /// The handshake was refused.
    #[error("{} refuses us: {said}", path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// The answer, escaped.
        said: String,
    },
    /// No answer came in time.
    #[error("{} has not answered {what} within {within:.1?}", path.display())]
    Stuck {
        /// The socket.
        path: PathBuf,
        /// What was asked.
        what: String,
        /// The deadline.
        within: Duration,
    },
    /// The other end hung up.
    #[error("{} closed the connection", path.display())]
    Closed {
        /// The socket.
        path: PathBuf,
    },
    /// What came is not D-Bus, or not what was asked for.
    #[error("{} speaks nonsense: {what}", path.display())]
    Malformed {
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        what: Malformed,
    },
    /// The answer is an error.
    #[error("{call} failed: {name}: {said}")]
    Answer {
        /// The method.
        call: String,
        /// The name of the error.
        name: String,
        /// Its text.
        said: String,
    },
    /// systemd is no longer on the bus.
    #[error("systemd left the bus")]
    Left,
}

/// What is wrong with bytes that came in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A line of the handshake does not end.
    #[error("a line of the handshake without an end")]
    Line,
    /// The first byte is no mark of a byte order.
    #[error("a message begins with none of the marks of one")]
    Mark,
    /// The message is larger than any that is awaited.
    #[error("a message of {0} bytes, more than anything it could be")]
    TooLarge(u64),
    /// The header of a message.
    #[error("the header of a message: {0}")]
    Header(String),
    /// A message carries another type than it should.
    #[error("{member} should carry {expected} and carries {found}")]
    Signature {
        /// The method or signal.
        member: String,
        /// The type that it should carry.
        expected: String,
        /// The type that it says it carries.
        found: String,
    },
    /// The body of a message is not of the type that it says it is.
    #[error("{member} carries what its signature does not allow: {what}")]
    Body {
        /// The method or signal.
        member: String,
        /// What is wrong with it.
        what: String,
    },
}

impl BusError {
    /// Whether no manager is there any more.
    pub fn is_end(&self) -> bool {
        use io::ErrorKind::{ConnectionRefused, NotFound};
        match self {
            Self::Connect { source, .. } => matches!(source.kind(), ConnectionRefused | NotFound),
            Self::Closed { .. } | Self::Left => true,
            _ => false,
        }
    }

    /// The sort of gap this leaves.
    pub fn why(&self) -> Why {
        match self {
            Self::Connect { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Why::Denied,
                io::ErrorKind::TimedOut => Why::Overrun,
                _ => Why::Unsupported,
            },
            Self::Refused { .. } => Why::Denied,
            Self::Stuck { .. } => Why::Overrun,
            Self::Closed { .. } | Self::Left => Why::Vanished,
            Self::Malformed { .. } | Self::Stranger { .. } => Why::Malformed,
            Self::Answer { name, .. } if name.ends_with("AccessDenied") => Why::Denied,
            Self::Answer { .. } => Why::Unsupported,
        }
    }
}
