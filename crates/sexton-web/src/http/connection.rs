//! One client, from its first request to its last.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::body::Body;
use super::paced::{Paced, Turn, Turns};
use super::request::Request;
use super::response::{Problem, Response};
use super::{Handler, MAX_HEAD_BYTES, MAX_HEADERS, PACE_TIME, blocking};

/// Requests on one connection, so that none is held for ever.
const MAX_REQUESTS: usize = 10_000;

/// What is read of a connection, and not used yet, is never more.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// How long what still comes is taken after a refusal.
const LINGER: Duration = Duration::from_secs(2);

/// Answers what comes, until the client goes or misbehaves.
pub(super) async fn serve<S, H>(stream: S, handler: Arc<H>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler,
{
    let client = Client {
        turns: Turns::new(),
        n_left: AtomicUsize::new(MAX_REQUESTS),
        has_unread: AtomicBool::new(false),
    };
    let mut paced = Paced::new(stream, client.turns.clone());
    let answers = service_fn(|request| {
        let handler = Arc::clone(&handler);
        let client = &client;
        async move { Ok::<_, Infallible>(client.answer(handler, request).await) }
    });
    let ended = http1::Builder::new()
        .max_header_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_BUFFER_BYTES)
        // Ours tells a client that is idle from one that is slow.
        .header_read_timeout(None)
        // A client may say that it has asked all, and still read.
        .half_close(true)
        .serve_connection(TokioIo::new(&mut paced), answers)
        .await;
    let refused = ended.err().and_then(|error| refusal(&client, &error));
    let mut stream = paced.into_stream();
    if let Some(problem) = &refused {
        let last = Response::from(problem.clone()).raw();
        let _ = timeout(PACE_TIME, stream.write_all(&last)).await;
    }
    if refused.is_some() || client.has_unread.load(Ordering::Relaxed) {
        linger(&mut stream).await;
    }
}

/// What to say to a client whose head could not be read. A client that went away is told
/// nothing.
fn refusal(client: &Client, error: &hyper::Error) -> Option<Problem> {
    match client.turns.get() {
        Turn::Late => Some(Problem::new(408, "the request's head took too long")),
        Turn::Idle(_) | Turn::Head(_) if error.is_parse_too_large() => {
            let detail = format!("at most {MAX_HEAD_BYTES} bytes and {MAX_HEADERS} headers");
            Some(Problem::new(431, detail))
        }
        Turn::Idle(_) | Turn::Head(_) if error.is_parse() => {
            let detail = format!("the request's head: {error}");
            Some(Problem::new(400, detail))
        }
        _ => None,
    }
}

/// Takes what still comes for a moment: a socket that is closed with bytes unread resets
/// the connection, and the client would never see the answer.
async fn linger(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let _ = timeout(LINGER, async {
        let _ = stream.shutdown().await;
        let mut piece = [0; 4096];
        while stream.read(&mut piece).await.is_ok_and(|n| n > 0) {}
    })
    .await;
}

/// What is known of a client.
struct Client {
    turns: Turns,
    /// Requests that it may still send.
    n_left: AtomicUsize,
    /// Whether there is a body that was not read to its end.
    has_unread: AtomicBool,
}

impl Client {
    async fn answer(
        &self,
        handler: Arc<impl Handler>,
        asked: hyper::Request<Incoming>,
    ) -> hyper::Response<Sent> {
        self.turns.set(Turn::Answering);
        let (head, incoming) = asked.into_parts();
        let (response, goes_on) = match Request::read(&head) {
            Ok(request) => self.handle(handler, request, incoming).await,
            Err(problem) => {
                self.has_unread.store(true, Ordering::Relaxed);
                (Response::from(problem).written(None), false)
            }
        };
        let is_last = self.n_left.fetch_sub(1, Ordering::Relaxed) <= 1;
        self.sent(response, goes_on && !is_last)
    }

    /// Answers on a task of its own: an answer that is nearly there is kept, even when the
    /// client did not wait for it.
    async fn handle(
        &self,
        handler: Arc<impl Handler>,
        request: Request,
        incoming: Incoming,
    ) -> (hyper::Response<Bytes>, bool) {
        let task = tokio::spawn(async move {
            let mut body = Body::new(incoming, request.length.unwrap_or(0));
            let request = Arc::new(request);
            let response = handler.answer(Arc::clone(&request), &mut body).await;
            let is_read = body.pass_over().await;
            let written = blocking(move || Ok(response.written(Some(&request)))).await;
            (written, is_read)
        });
        let (written, is_read) = task.await.unwrap_or_else(|error| {
            let problem = Problem::new(500, format!("cannot answer: {error}"));
            (Err(problem), false)
        });
        self.has_unread.fetch_or(!is_read, Ordering::Relaxed);
        let written = written.unwrap_or_else(|problem| Response::from(problem).written(None));
        (written, is_read)
    }

    /// Hands an answer to hyper.
    fn sent(&self, response: hyper::Response<Bytes>, goes_on: bool) -> hyper::Response<Sent> {
        let mut response = response.map(|bytes| Sent {
            bytes: Some(bytes).filter(|bytes| !bytes.is_empty()),
            turns: self.turns.clone(),
        });
        if !goes_on {
            let close = hyper::header::HeaderValue::from_static("close");
            let headers = response.headers_mut();
            headers.insert(hyper::header::CONNECTION, close);
        }
        if response.body().bytes.is_none() {
            self.turns.set(Turn::Answered);
        }
        response
    }
}

/// The bytes of an answer, which tell when they were taken.
struct Sent {
    bytes: Option<Bytes>,
    turns: Turns,
}

impl hyper::body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.turns.set(Turn::Answered);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::time::sleep;

    use crate::http::testing::{served, talk};

    #[test]
    fn a_head_that_comes_too_slowly_is_told_so() {
        let (answer, seconds) = talk(std::iter::repeat_n(&b"G"[..], 60));
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("x-content-type-options: nosniff\r\n"));
        // And what it still sends is taken for a moment.
        assert!((10..=13).contains(&seconds), "{seconds}");
    }

    #[test]
    fn a_client_that_asks_nothing_is_closed_without_a_word() {
        assert_eq!(talk([]), (String::new(), 20));
        let one = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let (answer, seconds) = talk([&one[..], b"", b"", one]);
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
        assert_eq!(seconds, 23);
    }

    #[test]
    fn a_body_that_comes_too_slowly_is_told_so() {
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
        let pieces = std::iter::once(&head[..]).chain(std::iter::repeat_n(&b"x"[..], 60));
        let (answer, seconds) = talk(pieces);
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!((10..=13).contains(&seconds), "{seconds}");
        // As slowly as is allowed.
        let piece = [b'x'; 2000];
        let pieces = std::iter::once(&head[..]).chain(std::iter::repeat_n(&piece[..], 50));
        let (answer, _) = talk(pieces);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    #[test]
    fn a_client_that_does_not_read_is_dropped() {
        let deaf = served(100_000, |stream| async {
            sleep(Duration::from_secs(60)).await;
            drop(stream);
        });
        assert_eq!(deaf, 10);
        // 2 KiB in each second are enough.
        let slow = served(100_000, |mut stream| async move {
            let mut piece = [0; 2048];
            while stream.read(&mut piece).await.is_ok_and(|n| n > 0) {
                sleep(Duration::from_millis(500)).await;
            }
        });
        assert!(slow > 20, "{slow}");
    }

    #[test]
    fn junk_after_requests_is_refused_after_their_answers() {
        let one = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let (answer, _) = talk([format!("{one}{one}\u{1}\u{2}\r\n\r\n").as_bytes()]);
        let of: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).map(|s| &s[..3]).collect();
        assert_eq!(of, ["200", "200", "400"], "{answer}");
        assert!(answer.ends_with('}'), "a problem: {answer}");
    }
}
