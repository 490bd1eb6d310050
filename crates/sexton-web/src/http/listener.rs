//! Takes connections, at most a number at once, on a thread of low priority.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use super::response::{Problem, Response};
use super::tls::Tls;
use super::{HEAD_TIME, Handler, MAX_CONNECTIONS, WORKERS, connection};

/// How nice the threads are that answer: the recorder's go first.
const NICE: i32 = 10;

/// A pause when the system has no room for a connection.
const BREATH: Duration = Duration::from_millis(100);

/// Where connections come in.
pub(crate) struct Listener {
    runtime: Runtime,
    listener: TcpListener,
    stop: StopHandle,
    tls: Option<Tls>,
}

/// Ends a listener from elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopHandle(Arc<Notify>);

impl StopHandle {
    /// No further connection is taken; those that are there are not waited for.
    pub(crate) fn stop(&self) {
        self.0.notify_one();
    }
}

impl Listener {
    /// Listens.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(WORKERS)
            .thread_name("answers")
            .on_thread_start(lower_priority)
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        Ok(Self {
            runtime,
            listener,
            stop: StopHandle::default(),
            tls: None,
        })
    }

    /// Where it listens, with the port that it got.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Speaks TLS from now on, and nothing else.
    pub(crate) fn set_tls(&mut self, tls: Tls) {
        self.tls = Some(tls);
    }

    /// What ends it.
    pub(crate) fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Takes connections until it is stopped.
    pub(crate) fn run(self, handler: Arc<impl Handler>) {
        lower_priority();
        self.runtime
            .spawn(take_all(self.listener, self.tls, handler));
        self.runtime.block_on(self.stop.0.notified());
        // What is being worked out is not waited for.
        self.runtime.shutdown_background();
    }
}

/// Where the priority may not be lowered, it is as it was.
fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, NICE);
}

async fn take_all(listener: TcpListener, tls: Option<Tls>, handler: Arc<impl Handler>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, or a client that went at once.
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            // A client that wants TLS would not understand it, and is just closed.
            if tls.is_none() {
                turn_away(stream);
            }
            continue;
        };
        let handler = Arc::clone(&handler);
        let tls = tls.clone();
        tokio::spawn(async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            match tls {
                Some(tls) => serve_tls(stream, &tls, handler).await,
                None => connection::serve(stream, handler).await,
            }
        });
    }
}

/// A client that does not agree on TLS in the time of a head is closed.
async fn serve_tls(stream: TcpStream, tls: &Tls, handler: Arc<impl Handler>) {
    let agreed = timeout(HEAD_TIME, tls.acceptor().accept(stream)).await;
    if let Ok(Ok(stream)) = agreed {
        connection::serve(stream, handler).await;
    }
}

/// Says that there is no room, without waiting for anything.
fn turn_away(stream: TcpStream) {
    let problem = Problem::new(503, format!("{MAX_CONNECTIONS} clients are connected"));
    // tokio does not know yet that it can be written to. A new socket always can.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(&Response::from(problem).raw());
    }
}
