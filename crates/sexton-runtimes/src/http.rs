//! Asks a daemon on a Unix socket one thing by HTTP/1, within a time and a size.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Tasks, connect, within};
use crate::trouble::{SAID_BYTES, Trouble, said};

/// The largest answer that is kept whole.
///
/// Chosen: a container takes about 800 bytes of the list, so this is 10,000 of them.
pub(crate) const ANSWER_LIMIT_BYTES: usize = 8 << 20;

/// The longest head. Those of Docker and Podman have about 300 bytes. Also the most that is
/// read at once.
const HEAD_LIMIT_BYTES: usize = 16 << 10;

/// An answer that has begun. Dropped, it closes its connection.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Incoming,
    _tasks: Tasks,
}

/// Asks, and waits at most so long for the head of the answer.
pub(crate) async fn ask(socket: &Path, target: &str, limit: Duration) -> Result<Answer, Trouble> {
    let until = Instant::now() + limit;
    let (status, mut answer) = within(limit, begin(socket, target)).await?;
    match status {
        200 => Ok(answer),
        status => Err(answer.refusal(status, until).await),
    }
}

/// Asks and gives all of the answer, for whose head and body it waits so long each.
pub(crate) async fn ask_whole(
    socket: &Path,
    target: &str,
    limit: Duration,
) -> Result<Vec<u8>, Trouble> {
    let answer = ask(socket, target, limit).await?;
    within(limit, answer.whole()).await
}

async fn begin(socket: &Path, target: &str) -> Result<(u16, Answer), Trouble> {
    // A daemon of this node asks for no more headers than these.
    let request = http::Request::get(target)
        .header(HOST, "localhost")
        .header(USER_AGENT, "sexton")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| Trouble::Malformed(format!("cannot ask for it by its name: {error}")))?;
    let stream = TokioIo::new(connect(socket).await?);
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_LIMIT_BYTES)
        .handshake(stream)
        .await
        .map_err(|error| Trouble::of_http(&error))?;
    let tasks = Tasks::default();
    // What goes wrong there is told to the reader of the answer as well.
    tasks.spawn(async { drop(connection.await) });
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| Trouble::of_http(&error))?;
    let status = response.status().as_u16();
    let answer = Answer {
        body: response.into_body(),
        _tasks: tasks,
    };
    Ok((status, answer))
}

impl Answer {
    /// More of the body, or nothing after its end. May be dropped while it waits.
    pub(crate) async fn more(&mut self) -> Result<Option<Bytes>, Trouble> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| Trouble::of_http(&error))?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    async fn whole(mut self) -> Result<Vec<u8>, Trouble> {
        let mut out = Vec::new();
        while let Some(bytes) = self.more().await? {
            out.extend_from_slice(&bytes);
            if out.len() > ANSWER_LIMIT_BYTES {
                return Err(Trouble::TooLarge);
            }
        }
        Ok(out)
    }

    /// What the daemon says of its refusal, as far as it says so in time.
    async fn refusal(&mut self, status: u16, until: Instant) -> Trouble {
        let mut words = Vec::new();
        while words.len() < SAID_BYTES
            && let Ok(Ok(Some(bytes))) = timeout_at(until, self.more()).await
        {
            words.extend_from_slice(&bytes);
        }
        Trouble::Refused {
            status,
            message: said(&words),
        }
    }
}
