//! The HTTP/1.1 server: hyper on one thread of low priority, and a bound on everything that
//! a client can make it hold or wait for.
//!
//! hyper reads and writes messages. What it does not bound is bounded here: how fast a client
//! must move bytes (`paced.rs`, `body.rs`), how many are connected (`listener.rs`). What may
//! block or takes time runs on a few worker threads ([`blocking`]). What is not needed is
//! refused: chunked bodies, upgrades, requests to a proxy.

mod body;
mod connection;
mod listener;
mod paced;
mod request;
mod response;
#[cfg(test)]
mod testing;
mod tls;

pub(crate) use body::Body;
pub(crate) use listener::{Listener, StopHandle};
pub(crate) use request::{Query, Request};
pub(crate) use response::{Payload, Problem, Response};
pub use tls::{Tls, TlsError};

use std::time::Duration;

/// The largest head of a request, its most headers, and the longest time it may take.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
pub(crate) const MAX_HEADERS: usize = 100;
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(10);

/// A connection without a request is closed after this.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(20);

/// Either way a client must move this many bytes in each such time.
pub(crate) const PACE_BYTES: usize = 16 << 10;
pub(crate) const PACE_TIME: Duration = Duration::from_secs(10);

/// Connections at once.
pub(crate) const MAX_CONNECTIONS: usize = 128;

/// Threads for what may block. Long work is bounded further, by the workshop.
const WORKERS: usize = 8;

/// Answers a request. The body can be read as long as the request is being answered.
pub(crate) trait Handler: Send + Sync + 'static {
    /// The answer.
    fn answer(
        self: std::sync::Arc<Self>,
        request: std::sync::Arc<Request>,
        body: &mut Body,
    ) -> impl Future<Output = Response> + Send;
}

/// Runs what may block, or takes more than a moment, on a worker thread. It runs to its end
/// even when the client has gone.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::new(500, format!("cannot answer: {error}"))))
}
