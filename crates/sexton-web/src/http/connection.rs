//! One client, from its first request to its last.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::body::{Body, is_timeout};
use super::request::{self, Request};
use super::response::{Problem, Response};
use super::{HEAD_TIME, Handler, IDLE_TIME, MAX_HEAD_BYTES, PACE_BYTES, PACE_TIME};

/// A body that nobody read is passed over when it is no longer than this; otherwise the
/// connection is closed.
const MAX_PASSED_OVER: u64 = 64 << 10;

/// Requests on one connection, so that none is held for ever.
const MAX_REQUESTS: usize = 10_000;

/// Answers what comes, until the client goes or misbehaves.
pub(super) fn serve(stream: &TcpStream, handler: &dyn Handler) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(MAX_HEAD_BYTES);
    for _ in 0..MAX_REQUESTS {
        let (request, used) = match read_head(stream, &mut buffer)? {
            Head::Request(request, used) => (request, used),
            Head::Closed => return Ok(()),
            Head::Bad(problem) => return refuse(stream, problem),
        };
        if !answer(stream, handler, &request, &buffer[used..])? {
            return Ok(());
        }
        let taken = usize::try_from(request.length.unwrap_or(0)).unwrap_or(usize::MAX);
        let end = used.saturating_add(taken).min(buffer.len());
        buffer.drain(..end);
    }
    Ok(())
}

enum Head {
    Request(Box<Request>, usize),
    Closed,
    Bad(Problem),
}

/// Reads until there is a whole head in the buffer. A client that sends it byte by byte
/// has no more time than one that sends it at once.
fn read_head(stream: &TcpStream, buffer: &mut Vec<u8>) -> io::Result<Head> {
    let mut began: Option<Instant> = (!buffer.is_empty()).then(Instant::now);
    let idle_since = Instant::now();
    let mut piece = [0; 4096];
    loop {
        match request::parse(buffer) {
            Ok(Some((request, used))) => return Ok(Head::Request(Box::new(request), used)),
            Err(problem) => return Ok(Head::Bad(problem)),
            Ok(None) => {}
        }
        let left = match began {
            Some(began) => HEAD_TIME.checked_sub(began.elapsed()),
            None => IDLE_TIME.checked_sub(idle_since.elapsed()),
        };
        let Some(left) = left.filter(|left| !left.is_zero()) else {
            let late = Problem::new(408, "the request's head took too long");
            return Ok(if began.is_some() {
                Head::Bad(late)
            } else {
                Head::Closed
            });
        };
        stream.set_read_timeout(Some(left))?;
        let mut from = stream;
        let most = piece
            .len()
            .min(MAX_HEAD_BYTES - buffer.len().min(MAX_HEAD_BYTES - 1));
        match from.read(&mut piece[..most]) {
            Ok(0) => return Ok(Head::Closed),
            Ok(n) => {
                began.get_or_insert_with(Instant::now);
                buffer.extend_from_slice(&piece[..n]);
            }
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether the connection goes on.
fn answer(
    stream: &TcpStream,
    handler: &dyn Handler,
    request: &Request,
    early: &[u8],
) -> io::Result<bool> {
    let expects = request.header("expect");
    if expects.is_some_and(|expects| expects.eq_ignore_ascii_case("100-continue")) {
        write_paced(stream, b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = Body::new(stream, early, request.length.unwrap_or(0));
    let response = handler.answer(request, &mut body);
    let goes_on = request.keeps_alive && body.left() <= MAX_PASSED_OVER;
    let mut request = request.clone();
    request.keeps_alive = goes_on;
    if goes_on {
        io::copy(&mut body, &mut io::sink())?;
    }
    write_paced(stream, &response.written(Some(&request)))?;
    if !goes_on && body.left() > 0 {
        linger(stream);
    }
    Ok(goes_on)
}

fn refuse(stream: &TcpStream, problem: Problem) -> io::Result<()> {
    write_paced(stream, &Response::from(problem).written(None))?;
    linger(stream);
    Ok(())
}

/// Takes what still comes for a moment: a socket that is closed with bytes unread resets
/// the connection, and the client would never see the answer.
fn linger(stream: &TcpStream) {
    const TIME: Duration = Duration::from_secs(2);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let began = Instant::now();
    let mut piece = [0; 16 << 10];
    while let Some(left) = TIME
        .checked_sub(began.elapsed())
        .filter(|left| !left.is_zero())
    {
        let mut from = stream;
        if stream.set_read_timeout(Some(left)).is_err()
            || from.read(&mut piece).is_ok_and(|n| n == 0)
        {
            return;
        }
    }
}

/// Writes as fast as the client reads, if it reads at all.
fn write_paced(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    let (mut began, mut so_far) = (Instant::now(), 0);
    while !rest.is_empty() {
        let Some(left) = PACE_TIME
            .checked_sub(began.elapsed())
            .filter(|t| !t.is_zero())
        else {
            if so_far < PACE_BYTES {
                return Err(io::ErrorKind::TimedOut.into());
            }
            (began, so_far) = (Instant::now(), 0);
            continue;
        };
        stream.set_write_timeout(Some(left))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                so_far += n;
                rest = &rest[n..];
            }
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
