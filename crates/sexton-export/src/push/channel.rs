//! One kind of data for one receiver: what is sent next, and what is done with its answer.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use sexton_model::moment::Moment;
use sexton_model::text::escape;
use sexton_store::{Place, PlaceFile, StoreError};

use super::load::Load;
use super::receiver::{Encoding, Receiver};
use super::source::{Now, Source, Step};
use super::stats::Stats;

/// How long is waited after a failure: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// A place that moved over nothing is written this often.
const SAVE_EVERY: Duration = Duration::from_secs(300);

/// A request is never made smaller than this because of what a receiver said of another.
const LEAST_BYTES: usize = 16 << 10;

/// Requests of a window that may be too large, beside as many as were taken: where all parts but the
/// smallest are too large there is one less than parts. Enough to get from 4 MiB to 16 KiB.
const MOST_TOO_LARGE: u64 = 8;

/// Characters of a receiver's refusal that are kept.
const SAID_CHARS: usize = 200;

/// A request to a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The path.
    pub path: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body, packed.
    pub body: Vec<u8>,
    /// What that unpacks to.
    pub plain_bytes: usize,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// An answer of HTTP.
    Answer {
        /// Its status.
        status: u16,
        /// When to come again.
        retry_after: Option<Duration>,
        /// Its body.
        bytes: Vec<u8>,
    },
    /// None, and why.
    Nothing(String),
}

/// Who makes requests.
pub trait Post {
    /// Makes one and waits for its answer, within a time.
    fn post(&mut self, request: &Request) -> Reply;
}

/// When a channel wants to be visited again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// There is more to send.
    Again,
    /// Not before this time has passed.
    After(Duration),
}

/// The window that is being sent.
#[derive(Debug)]
struct Open {
    after: Place,
    end_ns: u64,
    parts: VecDeque<Load>,
    /// Parts that were taken, and dropped.
    n_taken: u64,
    n_dropped: u64,
    /// Requests that were too large.
    n_too_large: u64,
}

/// One kind of data for one receiver.
#[derive(Debug)]
pub struct Channel {
    receiver: Receiver,
    source: Source,
    version: &'static str,
    file: PlaceFile,
    place: Place,
    saved: Moment,
    open: Option<Open>,
    wait_until: Option<Moment>,
    n_failures: u32,
    /// What one request may carry, as the receiver's answers taught.
    max_bytes: usize,
    stats: Stats,
}

/// What became of a part.
enum Outcome {
    Taken,
    Dropped,
    Halved(Load, Load),
    Later(Load, Option<Duration>, String),
}

impl Channel {
    /// Goes on where it was; without a place, from now on.
    pub fn new(
        receiver: Receiver,
        mut source: Source,
        file: PlaceFile,
        version: &'static str,
        now: Now,
    ) -> Self {
        let mut stats = Stats {
            channel: receiver.name.to_owned(),
            ..Stats::default()
        };
        let place = match file.read() {
            Ok(place) => place,
            Err(error) => {
                let why = error.chain();
                stats.trouble = Some(format!(
                    "the place in the ring is lost, sends from now on: {why}"
                ));
                None
            }
        };
        let place = place.unwrap_or_else(|| source.here(receiver.signal, now));
        if receiver.encoding == Encoding::Pyroscope {
            source.leave_out_ids();
        }
        Self {
            max_bytes: receiver.max_bytes(),
            receiver,
            source,
            version,
            file,
            place,
            saved: now.boot,
            open: None,
            wait_until: None,
            n_failures: 0,
            stats,
        }
    }

    /// How it does.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Does the next thing that is due: reads a window, or makes one request.
    pub fn visit(&mut self, now: Now, post: &mut dyn Post) -> Next {
        if let Some(until) = self.wait_until
            && now.boot < until
        {
            return Next::After(until.since(now.boot));
        }
        self.wait_until = None;
        if self.open.is_none()
            && let Some(next) = self.read(now)
        {
            return next;
        }
        self.drop_if_old(now);
        let Some(open) = &mut self.open else {
            return Next::Again;
        };
        if let Some(part) = open.parts.pop_front() {
            let outcome = self.send(part, post);
            if let Some(next) = self.take(outcome, now) {
                return next;
            }
        }
        self.finish_if_done(now);
        Next::Again
    }

    /// Reads the next window. Says when to come again if there is nothing to send now.
    fn read(&mut self, now: Now) -> Option<Next> {
        let (signal, max_age) = (self.receiver.signal, self.receiver.max_age);
        match self.source.next(&self.place, signal, now, max_age) {
            Ok(Step::NotYet(time)) => {
                if self.n_failures == 0 {
                    self.stats.lag_seconds = 0.0;
                }
                Some(Next::After(time))
            }
            Ok(Step::Skip(place, n_dropped)) => {
                self.stats.n_dropped += n_dropped;
                self.move_to(place, now, n_dropped > 0);
                Some(Next::Again)
            }
            Ok(Step::Window(window)) => {
                self.stats.n_folded += window.n_folded;
                let age_ns = now.wall_ns.saturating_sub(window.end_ns);
                self.stats.lag_seconds = age_ns as f64 / 1e9;
                if window.load.is_empty() {
                    self.move_to(window.after, now, false);
                    return Some(Next::Again);
                }
                self.open = Some(Open {
                    after: window.after,
                    end_ns: window.end_ns,
                    parts: VecDeque::from([window.load]),
                    n_taken: 0,
                    n_dropped: 0,
                    n_too_large: 0,
                });
                None
            }
            Err(error) => {
                let why = format!("cannot read the ring: {}", error.chain());
                Some(self.fail(why, None, now))
            }
        }
    }

    /// A window that grew too old while it waited is dropped: the receiver would refuse it.
    fn drop_if_old(&mut self, now: Now) {
        let max_age = self.receiver.max_age;
        let is_old = |open: &Open| {
            let age_ns = now.wall_ns.saturating_sub(open.end_ns);
            Duration::from_nanos(age_ns) > max_age
        };
        if let Some(open) = self.open.take_if(|open| is_old(open)) {
            self.stats.n_dropped += 1;
            self.move_to(open.after, now, true);
        }
    }

    fn send(&mut self, part: Load, post: &mut dyn Post) -> Outcome {
        let from = (self.source.node(), self.version);
        let Some((request, n_cut)) = self.receiver.request(&part, from, self.max_bytes) else {
            return self.halve(
                part,
                "a single item is larger than the receiver takes".to_owned(),
            );
        };
        self.stats.n_requests += 1;
        let (status, retry_after, bytes) = match post.post(&request) {
            Reply::Answer {
                status,
                retry_after,
                bytes,
            } => (status, retry_after, bytes),
            Reply::Nothing(why) => return Outcome::Later(part, None, why),
        };
        match status {
            200..300 => {
                self.stats.sent_bytes += request.body.len() as u64;
                self.stats.n_cut += n_cut;
                let left_out = self.receiver.left_out(&bytes);
                self.stats.n_refused += left_out.as_ref().map_or(0, |(n, _)| *n);
                self.stats.trouble = left_out
                    .map(|(n, why)| format!("the receiver left out {n} items: {}", plain(&why)));
                Outcome::Taken
            }
            413 => {
                self.max_bytes = (request.plain_bytes * 3 / 4).max(LEAST_BYTES);
                self.too_large(part, refusal(status, &bytes))
            }
            // A token that was replaced is read again with the next request.
            401 | 403 | 408 | 429 | 500 | 502..600 => {
                Outcome::Later(part, retry_after, refusal(status, &bytes))
            }
            _ => {
                self.stats.n_refused += 1;
                self.stats.trouble = Some(refusal(status, &bytes));
                Outcome::Dropped
            }
        }
    }

    /// A receiver that finds everything too large, or a proxy in front of it, would be asked ever
    /// again without a pause: the rest of such a window is dropped.
    fn too_large(&mut self, part: Load, why: String) -> Outcome {
        let Some(open) = &mut self.open else {
            return self.halve(part, why);
        };
        open.n_too_large += 1;
        if open.n_too_large <= open.n_taken + MOST_TOO_LARGE {
            return self.halve(part, why);
        }
        let n_left = open.parts.len() as u64;
        open.parts.clear();
        open.n_dropped += n_left;
        self.stats.n_refused += n_left + 1;
        self.stats.trouble = Some(why);
        Outcome::Dropped
    }

    fn halve(&mut self, part: Load, why: String) -> Outcome {
        match part.split() {
            Some((first, second)) => Outcome::Halved(first, second),
            None => {
                self.stats.n_refused += 1;
                self.stats.trouble = Some(why);
                Outcome::Dropped
            }
        }
    }

    fn take(&mut self, outcome: Outcome, now: Now) -> Option<Next> {
        match outcome {
            Outcome::Taken | Outcome::Dropped => {
                self.n_failures = 0;
                if let Some(open) = &mut self.open {
                    match outcome {
                        Outcome::Taken => open.n_taken += 1,
                        _ => open.n_dropped += 1,
                    }
                }
                None
            }
            Outcome::Halved(first, second) => {
                if let Some(open) = &mut self.open {
                    open.parts.push_front(second);
                    open.parts.push_front(first);
                }
                Some(Next::Again)
            }
            Outcome::Later(part, retry_after, why) => {
                if let Some(open) = &mut self.open {
                    open.parts.push_front(part);
                    let age_ns = now.wall_ns.saturating_sub(open.end_ns);
                    self.stats.lag_seconds = age_ns as f64 / 1e9;
                }
                Some(self.fail(why, retry_after, now))
            }
        }
    }

    /// Waits twice as long after each failure, and never all nodes of a fleet alike; at least as
    /// long as the receiver asks for.
    fn fail(&mut self, why: String, retry_after: Option<Duration>, now: Now) -> Next {
        let doubled = FIRST_WAIT.saturating_mul(1 << self.n_failures.min(10));
        let wait = doubled.min(LONGEST_WAIT);
        let mut hasher = DefaultHasher::new();
        (self.source.node(), now.wall_ns).hash(&mut hasher);
        let spread = wait.mul_f64(hasher.finish() as f64 / u64::MAX as f64 / 4.0);
        let wait = (wait + spread).max(retry_after.unwrap_or_default());
        self.n_failures = self.n_failures.saturating_add(1);
        self.stats.trouble = Some(why);
        self.wait_until = Some(now.boot.after(wait));
        Next::After(wait)
    }

    fn finish_if_done(&mut self, now: Now) {
        if let Some(open) = self.open.take_if(|open| open.parts.is_empty()) {
            // One of which nothing was taken was refused, which is counted.
            let is_sent = open.n_taken > 0 || open.n_dropped == 0;
            self.stats.n_sent += u64::from(is_sent);
            let age_ns = now.wall_ns.saturating_sub(open.end_ns);
            self.stats.lag_seconds = age_ns as f64 / 1e9;
            self.move_to(open.after, now, true);
        }
    }

    /// What was sent is written down at once, what was empty now and then.
    fn move_to(&mut self, place: Place, now: Now, is_sent: bool) {
        self.place = place;
        if is_sent || now.boot.since(self.saved) >= SAVE_EVERY {
            self.saved = now.boot;
            self.save();
        }
    }

    fn save(&mut self) {
        let written: Result<(), StoreError> = self.file.write(&self.place);
        if let Err(error) = written {
            self.stats.trouble = Some(format!("cannot keep its place: {}", error.chain()));
        }
    }
}

fn refusal(status: u16, bytes: &[u8]) -> String {
    match plain(&String::from_utf8_lossy(bytes)) {
        said if said.is_empty() => format!("the receiver answered {status}"),
        said => format!("the receiver answered {status}: {said}"),
    }
}

/// What a receiver says, as one line of plain text.
fn plain(said: &str) -> String {
    let said: String = said.chars().take(SAID_CHARS).collect();
    escape(said.trim().as_bytes())
}
