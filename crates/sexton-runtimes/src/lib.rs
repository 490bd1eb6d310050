//! Clients of container runtimes: Docker and Podman by HTTP/1, containerd and CRI by gRPC, all
//! on Unix sockets.
//!
//! Everything async lives here, on one thread of low priority ([`Reactor`]), and shows in no
//! signature: a caller begins a [`Session`] with a daemon and takes what it has told so far,
//! without waiting. A stuck daemon holds up neither the caller nor the sessions with others.
//! The protocols are those of hyper and tonic; every deadline and bound is set here.

mod connection;
mod container;
mod containerd;
mod cri;
mod docker;
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
mod http;
mod reactor;
mod runtimes;
mod session;
#[cfg(test)]
mod tests;
mod trouble;

pub use container::{Happening, Identity, Listed, State, What};
pub use reactor::Reactor;
pub use runtimes::{Daemon, REMEDY, Runtime, Speaks, daemon, examine, sockets};
pub use session::{Next, OVERLAP_NS, PAST_LIMIT, Pace, Session, Told};
pub use trouble::Trouble;
