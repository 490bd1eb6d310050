//! The one door to a node. Everything else reads through a [`Host`], so that a
//! replay of a captured tree or an image audit is the same code as a live run.

#![allow(unsafe_code, reason = "some system calls have no safe form")]

pub mod capabilities;
pub mod cgroup;
pub mod clock;
pub mod code;
pub mod ethtool;
pub mod listening;
pub mod machine;
pub mod mounts;
pub mod own;
pub mod page_batches;
pub mod page_owners;
pub mod perf;
pub mod process;
pub mod runtimes;
pub mod socket;
pub mod space;
pub mod taskstats;
pub mod tracepoint;

mod error;
mod host;
mod inside;
mod kernel_log;
mod root;
mod stream;

pub use error::HostError;
pub use host::{Host, READ_LIMIT_BYTES};
pub use inside::open_inside;
pub use kernel_log::KernelLog;
pub use root::{Entry, FolderRoot, Kind, LiveRoot, Meta, Root};
pub use stream::{Piece, Stream};
