//! A connection without a network and with a clock of its own, for tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, timeout};

use super::{Body, Handler, Payload, Problem, Request, Response, connection};

/// What came of some bytes.
#[derive(Debug)]
pub(super) struct Told {
    /// The status of the first answer; 0 when there was none.
    pub(super) status: u16,
    /// The requests that were understood.
    pub(super) requests: Vec<Request>,
}

/// Keeps what it is asked, takes bodies, and answers with `n_bytes` bytes.
#[derive(Default)]
struct Keeper {
    requests: Mutex<Vec<Request>>,
    n_bytes: usize,
}

impl Handler for Keeper {
    async fn answer(self: Arc<Self>, request: Arc<Request>, body: &mut Body) -> Response {
        {
            let mut requests = self.requests.lock().expect("no test panics with it");
            requests.push(Request::clone(&request));
        }
        loop {
            match body.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return Problem::new(408, error.to_string()).into(),
            }
        }
        let bytes = vec![b'x'; self.n_bytes];
        Response::new(200, "text/plain", Payload::Shared(bytes.into()))
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(work)
}

/// Sends these bytes and nothing more, and waits less long than a head may take.
pub(super) fn ask(bytes: &[u8]) -> Told {
    let keeper = Arc::new(Keeper::default());
    let answer = run(async {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let serves = tokio::spawn(connection::serve(theirs, Arc::clone(&keeper)));
        ours.write_all(bytes).await.expect("there is room");
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(5), ours.read_to_end(&mut answer)).await;
        drop(ours);
        let _ = serves.await;
        answer
    });
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    Told {
        status: status.unwrap_or(0),
        requests: std::mem::take(&mut *keeper.requests.lock().expect("as above")),
    }
}

/// Sends pieces, one each second, and says what was answered and after how many seconds the
/// connection was closed.
pub(super) fn talk<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, u64) {
    run(async {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (mut reads, mut writes) = tokio::io::split(ours);
        tokio::spawn(connection::serve(theirs, Arc::new(Keeper::default())));
        let began = Instant::now();
        let read = tokio::spawn(async move {
            let mut answer = String::new();
            let _ = reads.read_to_string(&mut answer).await;
            (answer, began.elapsed().as_secs())
        });
        for piece in pieces {
            if writes.write_all(piece).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        read.await.expect("it reads")
    })
}

/// After how many seconds a client is dropped that asks for this many bytes and then does
/// `read` with them.
pub(super) fn served<F: Future<Output = ()> + Send + 'static>(
    n_bytes: usize,
    read: impl FnOnce(DuplexStream) -> F,
) -> u64 {
    run(async {
        let keeper = Keeper {
            n_bytes,
            ..Keeper::default()
        };
        let (mut ours, theirs) = tokio::io::duplex(1 << 10);
        let began = Instant::now();
        let serves = tokio::spawn(connection::serve(theirs, Arc::new(keeper)));
        let asked = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        ours.write_all(asked).await.expect("there is room");
        tokio::spawn(read(ours));
        let _ = serves.await;
        began.elapsed().as_secs()
    })
}
