//! The thread that sends to one receiver.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use rustix::time::ClockId;
use sexton_http::{Ask, Bounds, Server};
use tokio::runtime::Runtime;

use super::channel::{Channel, Next, Post, Reply, Request};
use super::source::Now;
use super::stats::Stats;
use crate::own::Own;

/// From the connection to the end of the answer.
const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(10),
    answer_bytes: 64 << 10,
};

/// Below the agent's own threads: sending is never urgent.
const NICE: i32 = 10;

/// While it catches up, the thread rests this many times as long as it worked: 1 % of a core for
/// all receivers together.
const REST: u32 = 99;
const SHORTEST_REST: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_secs(5);

/// However long it may wait, it looks again after this.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Gives the figures of the agent itself.
pub type OwnFigures = Arc<dyn Fn() -> Own + Send + Sync>;

/// Where lines of the log go; `true` for trouble.
pub type Log = Box<dyn FnMut(bool, &str) + Send>;

/// The pace that receivers share: those that catch up at the same time are each as much slower.
#[derive(Debug, Default)]
pub struct Pace {
    n_behind: AtomicU32,
}

/// One receiver's part in the pace.
struct Part {
    pace: Arc<Pace>,
    is_behind: bool,
}

impl Part {
    /// How long to rest after this much work.
    fn rest(&self, worked: Duration) -> Duration {
        let n = self.pace.n_behind.load(Ordering::Relaxed).max(1);
        (worked * REST * n).clamp(SHORTEST_REST, LONGEST_REST * n)
    }

    fn set(&mut self, is_behind: bool) {
        match (self.is_behind, is_behind) {
            (false, true) => self.pace.n_behind.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.pace.n_behind.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.is_behind = is_behind;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// What a thread needs.
pub struct Settings {
    /// The receiver.
    pub server: Server,
    /// What is sent there.
    pub channels: Vec<Channel>,
    /// The version of sexton.
    pub version: &'static str,
    /// What time it is.
    pub now: fn() -> Now,
    /// Shared by all receivers.
    pub pace: Arc<Pace>,
}

#[derive(Default)]
struct Desk {
    stats: Vec<Stats>,
    is_stopped: bool,
}

/// Sends to one receiver, on a thread of its own.
pub struct Pusher {
    shared: Arc<(Mutex<Desk>, Condvar)>,
}

impl Pusher {
    /// Starts the thread.
    pub fn start(settings: Settings, log: Log) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared: Arc<(Mutex<Desk>, Condvar)> = Arc::default();
        let desk = Arc::clone(&shared);
        thread::Builder::new()
            .name("export".into())
            .spawn(move || {
                // Where it may not be lowered, it is as it was.
                let _ = rustix::process::setpriority_process(None, NICE);
                work(settings, runtime, &desk, log);
            })?;
        Ok(Self { shared })
    }

    /// How its channels do.
    pub fn stats(&self) -> Vec<Stats> {
        lock(&self.shared.0).stats.clone()
    }
}

impl Drop for Pusher {
    /// The thread ends by itself, after the request that is under way. Nothing waits for it: the
    /// place is written after each window.
    fn drop(&mut self) {
        lock(&self.shared.0).is_stopped = true;
        self.shared.1.notify_all();
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(settings: Settings, runtime: Runtime, shared: &(Mutex<Desk>, Condvar), mut log: Log) {
    let mut channels = settings.channels;
    let mut poster = Poster {
        server: settings.server,
        agent: format!("sexton/{}", settings.version),
        runtime,
    };
    let mut part = Part {
        pace: settings.pace,
        is_behind: false,
    };
    loop {
        let began = cpu_time();
        let (mut rest, mut has_more) = (LONGEST_WAIT, false);
        for channel in &mut channels {
            let before = channel.stats().trouble.clone();
            match channel.visit((settings.now)(), &mut poster) {
                Next::Again => has_more = true,
                Next::After(time) => rest = rest.min(time),
            }
            tell(channel.stats(), before, &mut log);
        }
        part.set(has_more);
        if has_more {
            rest = part.rest(cpu_time().saturating_sub(began)).min(rest);
        }
        let mut desk = lock(&shared.0);
        desk.stats = channels.iter().map(|it| it.stats().clone()).collect();
        if !desk.is_stopped {
            let waited = shared.1.wait_timeout(desk, rest);
            desk = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if desk.is_stopped {
            return;
        }
    }
}

/// What this thread used of a core, however long it had to wait for one.
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Logs when sending begins to fail, and when it works again.
fn tell(stats: &Stats, before: Option<String>, log: &mut Log) {
    let channel = &stats.channel;
    match (before, &stats.trouble) {
        (None, Some(why)) => log(true, &format!("export {channel}: {why}")),
        (Some(_), None) => log(false, &format!("export {channel}: sending works again")),
        _ => {}
    }
}

/// Makes requests over HTTP.
struct Poster {
    server: Server,
    agent: String,
    runtime: Runtime,
}

impl Post for Poster {
    fn post(&mut self, request: &Request) -> Reply {
        let headers = request.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
        let ask = Ask {
            method: Method::POST,
            path: &request.path,
            headers: headers.collect(),
            body: Bytes::from(request.body.clone()),
            agent: &self.agent,
        };
        let answer = self.runtime.block_on(self.server.ask(ask, BOUNDS));
        match answer {
            Ok(answer) => Reply::Answer {
                status: answer.status,
                retry_after: answer.retry_after,
                bytes: answer.bytes,
            },
            Err(error) => Reply::Nothing(error.chain()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_that_catch_up_together_share_one_pace() {
        let pace: Arc<Pace> = Arc::default();
        let part = || Part {
            pace: Arc::clone(&pace),
            is_behind: false,
        };
        let (mut one, mut other) = (part(), part());
        let work = Duration::from_millis(10);
        let alone = Duration::from_millis(990);
        one.set(true);
        one.set(true);
        assert_eq!(one.rest(work), alone);
        other.set(true);
        assert_eq!([one.rest(work), other.rest(work)], [alone * 2; 2]);
        assert_eq!(one.rest(Duration::from_secs(1)), LONGEST_REST * 2);
        drop(other);
        assert_eq!(one.rest(work), alone);
    }
}
