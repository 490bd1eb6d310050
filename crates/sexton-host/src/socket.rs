//! Connections to services of the node: the bus, container runtimes.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// How long to wait before a busy service is asked again.
const AGAIN: Duration = Duration::from_millis(20);

/// Connects to a Unix socket of the running node.
///
/// A plain `connect` sleeps for as long as the queue of a stuck service is full; this
/// one gives up with [`io::ErrorKind::TimedOut`].
pub fn connect_unix(path: &Path, within: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let until = Instant::now() + within;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN) if Instant::now() < until => thread::sleep(AGAIN),
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The user that listens at the other end.
pub fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    Ok(socket_peercred(stream)?.uid.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_user_at_the_other_end_is_told() {
        let folder = sexton_testkit::TempTree::new();
        let path = folder.path().join("socket");
        let _listener = UnixListener::bind(&path).expect("a socket");
        let stream = connect_unix(&path, Duration::from_secs(1)).expect("a connection");
        let user = peer_user(&stream).expect("a user");
        assert_eq!(user, crate::machine::effective_user());
    }

    #[test]
    fn a_full_queue_costs_the_deadline_and_no_more() {
        let folder = sexton_testkit::TempTree::new();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let within = Duration::from_millis(200);
        let began = Instant::now();
        let mut taken = Vec::new();
        // Nobody accepts, so at some point the queue is full.
        let error = loop {
            match connect_unix(&path, within) {
                Ok(stream) => taken.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(20), "{began:?}");
        drop(listener);
    }

    #[test]
    fn no_socket_is_an_error_at_once() {
        let error = connect_unix(Path::new("/nonexistent/socket"), Duration::from_secs(60));
        assert_eq!(
            error.expect_err("there is none").kind(),
            io::ErrorKind::NotFound
        );
    }
}
