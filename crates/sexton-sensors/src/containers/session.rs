//! One connection to a daemon, followed on a thread of its own until it ends.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sexton_host::clock;
use sexton_model::moment::Moment;

use super::api::{self, Happening, Lines, Listed};
use super::client::{Answer, Got, Trouble, ask};

/// Messages that may wait for a poll. More are counted as lost: a daemon whose events
/// nobody takes would drop them too.
const WAITING: usize = 4096;

/// Events of the past that are kept. Docker itself keeps 256.
pub(super) const PAST_LIMIT: usize = 2048;

/// The stream begins this much before the end of the past, as daemons stamp an event
/// before they publish it. What comes twice is left out by the tracker.
pub(super) const OVERLAP_NS: u64 = 2_000_000_000;

/// How patient we are with a daemon.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// For an answer.
    pub(super) answer: Duration,
    /// For an event, before the thread looks whether it is still wanted.
    pub(super) tick: Duration,
    /// Without an event, before the daemon is asked whether it is still there.
    pub(super) silence: Duration,
}

/// What the thread says.
#[derive(Debug)]
pub(super) enum Told {
    Past(Vec<Happening>),
    Listed(Vec<Listed>),
    Live(Happening),
    /// A line made no sense, for this reason.
    Garbled(String),
}

/// What is left to say once the messages are read.
#[derive(Debug)]
pub(super) enum Next {
    Told(Told),
    Nothing,
    Ended(Trouble),
}

/// A thread that follows a daemon.
#[derive(Debug)]
pub(super) struct Session {
    told: Receiver<Told>,
    worker: Option<JoinHandle<Trouble>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    n_lost: AtomicU64,
    /// When the question that is open was asked, in ns of our clock; 0 for none.
    asking_since_ns: AtomicU64,
}

impl Session {
    /// Tells what happened since then, what there is, and what happens from now on.
    pub(super) fn begin(socket: PathBuf, since_wall_ns: u64, wall_ns: u64, pace: Pace) -> Self {
        let shared = Arc::new(Shared::default());
        let (send, told) = sync_channel(WAITING);
        let worker = Worker {
            socket,
            pace,
            send,
            shared: Arc::clone(&shared),
        };
        let follow = move || match worker.follow(since_wall_ns, wall_ns) {
            Ok(()) => Trouble::Ended,
            Err(trouble) => trouble,
        };
        Self {
            told,
            worker: Some(thread::spawn(follow)),
            shared,
        }
    }

    /// The next message, without waiting for one.
    pub(super) fn next(&mut self) -> Next {
        match self.told.try_recv() {
            Ok(told) => Next::Told(told),
            Err(TryRecvError::Empty) => Next::Nothing,
            // The thread is over or about to be, so this does not wait either.
            Err(TryRecvError::Disconnected) => {
                let trouble = self.worker.take().map(JoinHandle::join);
                Next::Ended(match trouble {
                    Some(Ok(trouble)) => trouble,
                    _ => Trouble::Malformed("it broke the thread that reads it".into()),
                })
            }
        }
    }

    /// Messages that found no room since this was asked last.
    pub(super) fn take_lost(&self) -> u64 {
        self.shared.n_lost.swap(0, Ordering::Relaxed)
    }

    /// How long the daemon has owed an answer.
    pub(super) fn waits(&self) -> Duration {
        match self.shared.asking_since_ns.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => clock::now().since(Moment::from_ns(since)),
        }
    }
}

impl Drop for Session {
    /// Lets the thread end by itself, which takes it a tick, unless the daemon is stuck.
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

struct Worker {
    socket: PathBuf,
    pace: Pace,
    send: SyncSender<Told>,
    shared: Arc<Shared>,
}

impl Worker {
    fn follow(&self, since_wall_ns: u64, wall_ns: u64) -> Result<(), Trouble> {
        let past = api::events_between(since_wall_ns, wall_ns);
        let past = self.asking(|| self.past(self.ask(&past)?))?;
        self.tell(Told::Past(past));
        let list = self.asking(|| self.ask(api::LIST)?.whole(self.pace.answer))?;
        let list = api::list(&list).map_err(Trouble::Malformed)?;
        self.tell(Told::Listed(list));
        let since = wall_ns.saturating_sub(OVERLAP_NS);
        let stream = self.asking(|| self.ask(&api::events_since(since)))?;
        self.stream(stream)
    }

    /// All events of an answer that ends; of too many, the last.
    fn past(&self, mut answer: Answer) -> Result<Vec<Happening>, Trouble> {
        let until = Instant::now() + self.pace.answer;
        let mut past = VecDeque::new();
        let mut take = |line: Option<&[u8]>| {
            if let Some(happening) = self.read(line) {
                past.push_back(happening);
            }
            if past.len() > PAST_LIMIT {
                past.pop_front();
                self.lose();
            }
        };
        let (mut lines, mut bytes) = (Lines::default(), Vec::new());
        loop {
            let got = answer.more(until, &mut bytes)?;
            lines.feed(&bytes, &mut take);
            bytes.clear();
            // A daemon that never ends its past must not hold us either.
            if got == Got::Nothing || Instant::now() > until {
                return Err(Trouble::Silent(self.pace.answer));
            }
            if got == Got::End {
                lines.end(&mut take);
                return Ok(past.into());
            }
        }
    }

    fn stream(&self, mut answer: Answer) -> Result<(), Trouble> {
        let (mut lines, mut bytes) = (Lines::default(), Vec::new());
        let mut heard = Instant::now();
        while !self.shared.is_over.load(Ordering::Relaxed) {
            match answer.more(Instant::now() + self.pace.tick, &mut bytes)? {
                Got::End => return Err(Trouble::Ended),
                Got::Bytes => heard = Instant::now(),
                // No events and no daemon look alike until it is asked.
                Got::Nothing if heard.elapsed() > self.pace.silence => {
                    self.asking(|| self.ask(api::PING)?.whole(self.pace.answer))?;
                    heard = Instant::now();
                }
                Got::Nothing => {}
            }
            lines.feed(&bytes, |line| {
                if let Some(happening) = self.read(line) {
                    self.tell(Told::Live(happening));
                }
            });
            bytes.clear();
        }
        Ok(())
    }

    /// What a line says; one that makes no sense is told as such.
    fn read(&self, line: Option<&[u8]>) -> Option<Happening> {
        let told = match line {
            Some(line) => api::event(line),
            None => Err(format!("it is over {} bytes", api::LINE_LIMIT_BYTES)),
        };
        told.unwrap_or_else(|why| {
            self.tell(Told::Garbled(why));
            None
        })
    }

    fn ask(&self, target: &str) -> Result<Answer, Trouble> {
        ask(&self.socket, target, self.pace.answer)
    }

    /// Does something that the daemon may be too stuck for.
    fn asking<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let since = &self.shared.asking_since_ns;
        since.store(clock::now().as_ns(), Ordering::Relaxed);
        let done = work();
        since.store(0, Ordering::Relaxed);
        done
    }

    fn tell(&self, told: Told) {
        if self.send.try_send(told).is_err() {
            self.lose();
        }
    }

    fn lose(&self) {
        self.shared.n_lost.fetch_add(1, Ordering::Relaxed);
    }
}
