//! A connection that does not wait for its client for ever, and knows whose turn it is.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{HEAD_TIME, IDLE_TIME, PACE_BYTES, PACE_TIME};

/// How far the conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// No request, since then.
    Idle(Instant),
    /// A head has begun to come, then.
    Head(Instant),
    /// The head did not come in time.
    Late,
    /// A request is being answered.
    Answering,
    /// The whole answer was handed to hyper, which has yet to write it.
    Answered,
}

/// Whose turn it is, known to the connection and to what answers on it.
#[derive(Debug, Clone)]
pub(super) struct Turns(Arc<Mutex<Turn>>);

impl Turns {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Turn::Idle(Instant::now()))))
    }

    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self) -> Turn {
        *self.lock()
    }

    pub(super) fn set(&self, turn: Turn) {
        *self.lock() = turn;
    }
}

/// A stream whose client must keep the pace.
pub(super) struct Paced<S> {
    stream: S,
    turns: Turns,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
    /// When this stretch of writing began, and what the client took since.
    writing: Option<(Instant, usize)>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Paced<S> {
    pub(super) fn new(stream: S, turns: Turns) -> Self {
        let timer = || Box::pin(sleep_until(Instant::now()));
        Self {
            stream,
            turns,
            read_timer: timer(),
            write_timer: timer(),
            writing: None,
        }
    }

    /// The stream itself, for a last word.
    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// Waits for a head no longer than it may take. A client that sends it byte by byte has
    /// no more time than one that sends it at once.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let (until, late) = match self.turns.get() {
            Turn::Idle(since) => (since + IDLE_TIME, Turn::Idle(since)),
            Turn::Head(since) => (since + HEAD_TIME, Turn::Late),
            // Bodies have a pace of their own.
            Turn::Answering | Turn::Answered | Turn::Late => return Poll::Pending,
        };
        ready!(poll_until(&mut self.read_timer, until, cx));
        self.turns.set(late);
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Waits for a client that does not read as long as it keeps the pace.
    fn poll_deaf(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            let (began, so_far) = *self.writing.get_or_insert((Instant::now(), 0));
            ready!(poll_until(&mut self.write_timer, began + PACE_TIME, cx));
            if so_far < PACE_BYTES {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.writing = Some((Instant::now(), 0));
        }
    }

    /// What hyper writes while no request is being answered is its own answer to a head that
    /// it cannot read. Ours says why, and follows when hyper has ended.
    fn is_refusal(&self) -> bool {
        matches!(self.turns.get(), Turn::Idle(_) | Turn::Head(_))
    }

    fn written(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match write {
            Poll::Ready(Ok(n)) => {
                self.writing.get_or_insert((Instant::now(), 0)).1 += n;
                Poll::Ready(Ok(n))
            }
            Poll::Ready(failed) => Poll::Ready(failed),
            Poll::Pending => self.poll_deaf(cx).map(Err),
        }
    }
}

fn poll_until(timer: &mut Pin<Box<Sleep>>, until: Instant, cx: &mut Context<'_>) -> Poll<()> {
    if timer.deadline() != until {
        timer.as_mut().reset(until);
    }
    timer.as_mut().poll(cx)
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() {
            return self.poll_late(cx).map(Err);
        }
        if buffer.filled().len() > before && matches!(self.turns.get(), Turn::Idle(_)) {
            self.turns.set(Turn::Head(Instant::now()));
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let write = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal() {
            return Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()));
        }
        let write = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.written(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when all that it had was written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.writing = None;
        if self.turns.get() == Turn::Answered {
            self.turns.set(Turn::Idle(Instant::now()));
        }
        Poll::Ready(Ok(()))
    }

    /// The stream is left open: there may be a last word.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
