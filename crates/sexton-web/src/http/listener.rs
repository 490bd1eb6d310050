//! Takes connections: so many at once, each on a thread of low priority.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::response::{Problem, Response};
use super::{Handler, MAX_CONNECTIONS, connection};

/// How nice the threads are that answer: the recorder's go first.
const NICE: i32 = 10;

/// A pause when the system has no room for a connection.
const BREATH: Duration = Duration::from_millis(100);

/// Where connections come in.
pub(crate) struct Listener {
    listener: TcpListener,
    stop: Arc<AtomicBool>,
    handler: Arc<dyn Handler>,
}

/// Ends a listener from elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct StopHandle {
    stop: Arc<AtomicBool>,
    address: SocketAddr,
}

impl StopHandle {
    /// No further connection is taken; those that are there are not waited for.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes whoever waits for a connection.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }
}

impl Listener {
    /// Listens.
    pub(crate) fn bind(address: SocketAddr, handler: Arc<dyn Handler>) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind(address)?,
            stop: Arc::new(AtomicBool::new(false)),
            handler,
        })
    }

    /// Where it listens, with the port that it got.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What ends it.
    pub(crate) fn stop_handle(&self) -> io::Result<StopHandle> {
        Ok(StopHandle {
            stop: Arc::clone(&self.stop),
            address: self.address()?,
        })
    }

    /// Takes connections until it is stopped.
    pub(crate) fn run(&self) {
        let n_open = Arc::new(AtomicUsize::new(0));
        while !self.stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((stream, _)) if !self.stop.load(Ordering::Relaxed) => {
                    self.take(stream, &n_open);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Out of file descriptors, or a client that went at once.
                Err(_) => thread::sleep(BREATH),
            }
        }
    }

    fn take(&self, stream: TcpStream, n_open: &Arc<AtomicUsize>) {
        let place = Place::take(n_open);
        if place.n > MAX_CONNECTIONS {
            return turn_away(&stream);
        }
        let handler = Arc::clone(&self.handler);
        // Without a thread the connection is closed, which the client sees.
        let _ = thread::Builder::new()
            .name("answers".into())
            .spawn(move || {
                let _place = place;
                // Where it may not be lowered, it is as it was.
                let _ = rustix::process::setpriority_process(None, NICE);
                // A client that goes away is not an error of ours.
                let _ = connection::serve(&stream, &*handler);
            });
    }
}

/// Says that there is no room, without waiting for anything.
fn turn_away(mut stream: &TcpStream) {
    use std::io::Write as _;
    let problem = Problem::new(503, format!("{MAX_CONNECTIONS} clients are connected"));
    let answer = Response::from(problem).written(None);
    let _ = stream.set_nonblocking(true);
    let _ = stream.write(&answer);
}

/// One of the places for connections; given back when it is dropped.
struct Place {
    n: usize,
    n_open: Arc<AtomicUsize>,
}

impl Place {
    fn take(n_open: &Arc<AtomicUsize>) -> Self {
        Self {
            n: n_open.fetch_add(1, Ordering::Relaxed) + 1,
            n_open: Arc::clone(n_open),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.n_open.fetch_sub(1, Ordering::Relaxed);
    }
}
