//! One daemon, followed until it ends the connection or the session is dropped.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sexton_host::clock;
use sexton_model::moment::Moment;
use tokio::task::AbortHandle;

use crate::container::{Happening, Listed};
use crate::reactor::Reactor;
use crate::runtimes::Speaks;
use crate::trouble::Trouble;
use crate::{containerd, cri, docker};

/// Messages that may wait for a poll. More are dropped and counted, as a daemon does with
/// events that a client does not read.
const WAITING: usize = 4096;

/// Events of the past that are kept. Docker itself keeps 256.
pub const PAST_LIMIT: usize = 2048;

/// The stream begins this much before the end of the past, as daemons stamp an event
/// before they publish it. What comes twice is left to the caller.
pub const OVERLAP_NS: u64 = 2_000_000_000;

/// How patient we are with a daemon.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// For an answer.
    pub answer: Duration,
    /// Before containerd is asked a second time what there is. A runtime that has no events
    /// is asked every five of these.
    pub tick: Duration,
    /// Without an event, before the daemon is asked whether it is still there.
    pub silence: Duration,
}

/// What a daemon says.
#[derive(Debug)]
pub enum Told {
    /// What happened before the session.
    Past(Vec<Happening>),
    /// What there is.
    Listed(Vec<Listed>),
    /// What has just happened.
    Live(Box<Happening>),
    /// Something made no sense, for this reason.
    Garbled(String),
}

/// What is left to say once the messages are read.
#[derive(Debug)]
pub enum Next {
    /// A message.
    Told(Told),
    /// No message yet.
    Nothing,
    /// There will be no more messages, for this reason.
    Ended(Trouble),
}

/// A daemon that is followed.
#[derive(Debug)]
pub struct Session {
    told: Receiver<Told>,
    task: AbortHandle,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    n_lost: AtomicU64,
    /// When the question that is open was asked, in ns of our clock; 0 for none.
    asking_since_ns: AtomicU64,
    /// Why it ended, once it has.
    trouble: Mutex<Option<Trouble>>,
}

impl Session {
    /// Tells what happened since then, what there is, and what happens from now on.
    pub fn begin(
        reactor: &mut Reactor,
        speaks: Speaks,
        socket: PathBuf,
        since_wall_ns: u64,
        wall_ns: u64,
        pace: Pace,
    ) -> Result<Self, Trouble> {
        let shared = Arc::new(Shared::default());
        let (send, told) = sync_channel(WAITING);
        let worker = Worker {
            socket,
            pace,
            send,
            shared: Arc::clone(&shared),
        };
        let handle = reactor.handle().map_err(Trouble::NoThread)?;
        let task = handle.spawn(async move {
            let trouble = worker.follow(speaks, since_wall_ns, wall_ns).await;
            let ended = worker.shared.trouble.lock();
            *ended.unwrap_or_else(PoisonError::into_inner) = Some(trouble);
        });
        Ok(Self {
            told,
            task: task.abort_handle(),
            shared,
        })
    }

    /// The next message, without waiting for one.
    #[expect(clippy::should_implement_trait, reason = "it never ends with nothing")]
    pub fn next(&mut self) -> Next {
        match self.told.try_recv() {
            Ok(told) => Next::Told(told),
            Err(TryRecvError::Empty) => Next::Nothing,
            // The reason is left before the channel is.
            Err(TryRecvError::Disconnected) => {
                let trouble = &self.shared.trouble;
                let trouble = trouble
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                let broke = || Trouble::Malformed("it broke the task that reads it".into());
                Next::Ended(trouble.unwrap_or_else(broke))
            }
        }
    }

    /// Messages that were dropped since this was asked last, because too many waited.
    pub fn take_lost(&self) -> u64 {
        self.shared.n_lost.swap(0, Ordering::Relaxed)
    }

    /// How long the daemon has owed an answer.
    pub fn waits(&self) -> Duration {
        match self.shared.asking_since_ns.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => clock::now().since(Moment::from_ns(since)),
        }
    }
}

impl Drop for Session {
    /// Closes the connections, also those of a daemon that is stuck.
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a daemon is followed with.
pub(crate) struct Worker {
    pub(crate) socket: PathBuf,
    pub(crate) pace: Pace,
    send: SyncSender<Told>,
    shared: Arc<Shared>,
}

impl Worker {
    async fn follow(&self, speaks: Speaks, since_wall_ns: u64, wall_ns: u64) -> Trouble {
        let followed = match speaks {
            Speaks::Docker => docker::follow(self, since_wall_ns, wall_ns).await,
            Speaks::Containerd => containerd::follow(self, since_wall_ns).await,
            Speaks::Cri => cri::follow(self, since_wall_ns).await,
        };
        let Err(trouble) = followed;
        trouble
    }

    /// Does something that the daemon may be too stuck for.
    pub(crate) async fn asking<T>(&self, work: impl Future<Output = T>) -> T {
        let since = &self.shared.asking_since_ns;
        // Within another question the first one counts.
        let now_ns = clock::now().as_ns();
        let is_first = since
            .compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        let done = work.await;
        if is_first {
            since.store(0, Ordering::Relaxed);
        }
        done
    }

    pub(crate) fn tell(&self, told: Told) {
        if self.send.try_send(told).is_err() {
            self.lose();
        }
    }

    pub(crate) fn lose(&self) {
        self.shared.n_lost.fetch_add(1, Ordering::Relaxed);
    }
}
