//! One connection to a daemon, followed on a thread of its own until it ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sexton_host::clock;
use sexton_model::moment::Moment;

use super::api::{Happening, Listed};
use super::client::Trouble;
use super::runtimes::Speaks;
use super::{containerd, cri, docker};

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
    Live(Box<Happening>),
    /// Something made no sense, for this reason.
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
    pub(super) fn begin(
        speaks: Speaks,
        socket: PathBuf,
        since_wall_ns: u64,
        wall_ns: u64,
        pace: Pace,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let (send, told) = sync_channel(WAITING);
        let worker = Worker {
            socket,
            pace,
            send,
            shared: Arc::clone(&shared),
        };
        let follow = move || match worker.follow(speaks, since_wall_ns, wall_ns) {
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

/// What the thread works with.
pub(super) struct Worker {
    pub(super) socket: PathBuf,
    pub(super) pace: Pace,
    send: SyncSender<Told>,
    shared: Arc<Shared>,
}

impl Worker {
    fn follow(&self, speaks: Speaks, since_wall_ns: u64, wall_ns: u64) -> Result<(), Trouble> {
        match speaks {
            Speaks::Docker => docker::follow(self, since_wall_ns, wall_ns),
            Speaks::Containerd => containerd::follow(self, since_wall_ns),
            Speaks::Cri => cri::follow(self, since_wall_ns),
        }
    }

    /// Whether nobody listens any more.
    pub(super) fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    /// Does something that the daemon may be too stuck for.
    pub(super) fn asking<T>(&self, work: impl FnOnce() -> T) -> T {
        let since = &self.shared.asking_since_ns;
        // Within another question the first one counts.
        let now_ns = clock::now().as_ns();
        let is_first = since
            .compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        let done = work();
        if is_first {
            since.store(0, Ordering::Relaxed);
        }
        done
    }

    pub(super) fn tell(&self, told: Told) {
        if self.send.try_send(told).is_err() {
            self.lose();
        }
    }

    pub(super) fn lose(&self) {
        self.shared.n_lost.fetch_add(1, Ordering::Relaxed);
    }
}
