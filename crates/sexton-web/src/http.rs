//! A small HTTP/1.1 server: one thread for each connection, and a bound on everything that
//! a client can make it hold or wait for.
//!
//! Without async on purpose. The threads can be given a lower priority than the recorder's,
//! a socket's own timeouts bound slow clients, and a request is read into one buffer of a
//! fixed size. What is not needed is refused: chunked bodies, pipes through, upgrades.

mod body;
mod connection;
mod listener;
mod request;
mod response;

pub(crate) use body::Body;
pub(crate) use listener::{Listener, StopHandle};
pub(crate) use request::{Query, Request};
pub(crate) use response::{Payload, Problem, Response};

use std::time::Duration;

/// A request's head may be so large, have so many headers, and take so long.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
pub(crate) const MAX_HEADERS: usize = 100;
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(10);

/// A connection without a request is closed after this.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(20);

/// Either way a client must move so many bytes in each such time.
pub(crate) const PACE_BYTES: usize = 16 << 10;
pub(crate) const PACE_TIME: Duration = Duration::from_secs(10);

/// Connections at once.
pub(crate) const MAX_CONNECTIONS: usize = 128;

/// Answers a request. The body can be read as long as the request is being answered.
pub(crate) trait Handler: Send + Sync {
    /// The answer.
    fn answer(&self, request: &Request, body: &mut Body<'_>) -> Response;
}
