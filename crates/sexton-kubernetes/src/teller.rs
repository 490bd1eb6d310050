//! The thread that tells the API server. It takes the newest verdict and no other, so nothing
//! piles up while the API server is away; what could not be told is told when it is back.

mod visit;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

use crate::access::Access;
use crate::conditions::Hold;
use crate::verdict::{Turn, Verdict};
use visit::Visitor;

/// How much the thread stands back for others.
const NICE: i32 = 10;

/// Turns that wait to be told at most. Beyond, the oldest go and are counted.
const MAX_TURNS: usize = 256;

/// Where lines of the log go: whether it is trouble, and the line.
pub type Log = Box<dyn FnMut(bool, &str) + Send>;

/// What a teller is told to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the API server is reached.
    pub access: Access,
    /// The name of this node.
    pub node: String,
    /// What links to pages of rules begin with.
    pub runbooks: String,
    /// The version of sexton.
    pub version: &'static str,
    /// How often it is told.
    pub pace: Pace,
}

/// How often the API server is told, and how long conditions are held.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// All conditions are told this often when nothing changes.
    pub heartbeat: Duration,
    /// Changes that come closer together are told as one.
    pub least_between: Duration,
    /// The first wait after a failure; doubled with each that follows.
    pub first_wait: Duration,
    /// The longest wait, unless the API server asks for a longer one.
    pub longest_wait: Duration,
    /// How long conditions are held.
    pub hold: Hold,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(300),
            least_between: Duration::from_secs(10),
            first_wait: Duration::from_secs(2),
            longest_wait: Duration::from_secs(300),
            hold: Hold::default(),
        }
    }
}

/// How it goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that were made.
    pub n_requests: u64,
    /// Of these, those that failed.
    pub n_failed: u64,
    /// Turns that were dropped before they could be told, and events that the API server refused.
    pub n_dropped: u64,
    /// What keeps it from telling, while something does.
    pub trouble: Option<String>,
}

#[derive(Debug, Default)]
struct Inbox {
    verdict: Option<Verdict>,
    turns: Vec<Turn>,
    n_dropped: u64,
    is_stopped: bool,
    stats: Stats,
}

#[derive(Debug, Default)]
struct Desk {
    inbox: Mutex<Inbox>,
    bell: Notify,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the API server, on a thread of its own.
#[derive(Debug)]
pub struct Teller {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl Teller {
    /// Starts the thread.
    pub fn start(settings: Settings, log: Log) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::clone(&desk);
        let thread = thread::Builder::new()
            .name("kubernetes".into())
            .spawn(move || {
                // Where it may not be lowered, it is as it was.
                let _ = rustix::process::setpriority_process(None, NICE);
                runtime.block_on(Visitor::new(settings, shared, log).work());
            })?;
        Ok(Self {
            desk,
            thread: Some(thread),
        })
    }

    /// Hands over a verdict. Never waits; only the newest is kept, with the turns of all.
    pub fn tell(&self, mut verdict: Verdict) {
        let mut inbox = self.desk.lock();
        inbox.turns.append(&mut verdict.turns);
        let n_over = inbox.turns.len().saturating_sub(MAX_TURNS);
        inbox.turns.drain(..n_over);
        inbox.n_dropped += n_over as u64;
        inbox.verdict = Some(verdict);
        drop(inbox);
        self.desk.bell.notify_one();
    }

    /// How it goes.
    pub fn stats(&self) -> Stats {
        let inbox = self.desk.lock();
        let mut stats = inbox.stats.clone();
        stats.n_dropped += inbox.n_dropped;
        stats
    }

    /// Stops the thread; a request that is under way is dropped.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.desk.lock().is_stopped = true;
        self.desk.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.end();
    }
}

fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
