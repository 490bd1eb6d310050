use std::io;
use std::path::PathBuf;

use sexton_model::gap::Why;

/// What the kernel says of a network device that is gone.
const NO_SUCH_DEVICE: i32 = rustix::io::Errno::NODEV.raw_os_error();

/// Why something could not be read from a node.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The file or directory could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file was read but makes no sense.
    #[error("cannot make sense of {}: {what}", path.display())]
    Malformed {
        /// What was read.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The file is larger than anything that belongs there.
    #[error("{} is over {limit_bytes} bytes, too large to be what it should be", path.display())]
    TooLarge {
        /// What was to be read.
        path: PathBuf,
        /// What is allowed.
        limit_bytes: u64,
    },
    /// The mount table does not show what is needed.
    #[error("{0} is not mounted here")]
    NotMounted(&'static str),
    /// Only a running node can be asked this.
    #[error("cannot read {0}: this is not a running node")]
    NotLive(String),
    /// A driver could not be asked.
    #[error("cannot ask {device} for {what}")]
    Ask {
        /// The device whose driver was asked.
        device: String,
        /// What for.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl HostError {
    /// The sort of gap this leaves.
    pub fn why(&self) -> Why {
        match self {
            Self::Read { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Why::Denied,
                io::ErrorKind::NotFound => Why::Vanished,
                _ => Why::Unsupported,
            },
            Self::Ask { source, .. } => match (source.kind(), source.raw_os_error()) {
                (io::ErrorKind::PermissionDenied, _) => Why::Denied,
                (io::ErrorKind::InvalidData, _) => Why::Malformed,
                (_, Some(NO_SUCH_DEVICE)) => Why::Vanished,
                _ => Why::Unsupported,
            },
            Self::Malformed { .. } | Self::TooLarge { .. } => Why::Malformed,
            Self::NotMounted(_) | Self::NotLive(_) => Why::Unsupported,
        }
    }

    /// Whether there is no such file or directory.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The error and everything behind it, in one line.
    pub fn chain(&self) -> String {
        match self {
            Self::Read { source, .. } | Self::Ask { source, .. } => format!("{self}: {source}"),
            Self::Malformed { .. }
            | Self::TooLarge { .. }
            | Self::NotMounted(_)
            | Self::NotLive(_) => self.to_string(),
        }
    }
}
