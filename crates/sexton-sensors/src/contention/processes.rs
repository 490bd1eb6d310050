//! What all processes and their threads ran and waited between two looks, within a limit.
//!
//! Most processes cost one small file: `schedstat` of the main thread. `stat` is read only of one
//! that is new, has run since, or has several threads; it counts the run time of all threads, which
//! is the sign by which the few are chosen whose threads are read one by one.

use std::collections::HashMap;
use std::time::Duration;

use sexton_host::Host;
use sexton_model::moment::Moment;

use crate::effort::Effort;
use crate::tasks::{self, Stat};

/// Threads that one look reads, and of one process.
const MAX_THREADS: usize = 4096;
const MAX_THREADS_OF_ONE: usize = 1024;

/// The part of a look's effort that goes to processes; threads have the rest.
const FOR_PROCESSES: f64 = 0.6;

/// Between two looks at the clock.
const LOOKS: usize = 32;

/// The kernel counts run time in ticks of this length for programs (`USER_HZ`).
const TICK_NS: u64 = 10_000_000;

/// A task that runs or waits for this part of the time does not sleep.
const NEVER_SLEEPS: f64 = 0.95;

/// What the kernel says of a task since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) ran_ns: u64,
    pub(super) waited_ns: u64,
}

impl Times {
    fn since(self, earlier: Self) -> Self {
        Self {
            ran_ns: self.ran_ns.saturating_sub(earlier.ran_ns),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
        }
    }

    pub(super) fn sum_ns(self) -> u64 {
        self.ran_ns.saturating_add(self.waited_ns)
    }

    fn add(&mut self, other: Self) {
        self.ran_ns = self.ran_ns.saturating_add(other.ran_ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
    }
}

/// `ran waited slices`, in nanoseconds, see Documentation/scheduler/sched-stats.rst.
pub(super) fn parse(schedstat: &[u8]) -> Option<Times> {
    let mut words = std::str::from_utf8(schedstat)
        .ok()?
        .split_ascii_whitespace();
    Some(Times {
        ran_ns: words.next()?.parse().ok()?,
        waited_ns: words.next()?.parse().ok()?,
    })
}

/// A task, and since when it has not slept.
#[derive(Debug, Clone, Copy)]
struct Task {
    times: Times,
    from: Moment,
    then: Times,
}

impl Task {
    fn new(times: Times, at: Moment) -> Self {
        Self {
            times,
            from: at,
            then: times,
        }
    }

    /// One that began after the look before this one: all it did was since.
    fn begun(before: Moment) -> Self {
        Self {
            times: Times::default(),
            from: before,
            then: Times::default(),
        }
    }

    /// What it did since the last look, and for how long it has not slept.
    fn go_on(&mut self, times: Times, now: Moment) -> (Times, Option<Duration>) {
        let grown = times.since(self.times);
        self.times = times;
        let length = now.since(self.from);
        let busy = Duration::from_nanos(times.since(self.then).sum_ns());
        if !length.is_zero() && busy >= length.mul_f64(NEVER_SLEEPS) {
            return (grown, Some(length));
        }
        (self.from, self.then) = (now, times);
        (grown, None)
    }
}

/// A process as the last look left it.
#[derive(Debug)]
struct Known {
    started: u64,
    n_threads: u32,
    main: Task,
    /// Run time of all threads, in ticks.
    ran: u64,
    threads: Threads,
    /// Whether it did anything since the look before.
    is_active: bool,
}

/// The threads of a process, where they were read.
#[derive(Debug, Default)]
struct Threads {
    known: HashMap<u32, Task>,
    /// Whether these were all: one that is new has begun since.
    are_all: bool,
    /// Up to when it is known what they did.
    until: Option<Moment>,
}

/// What a process did between two looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Grown {
    pub(super) pid: u32,
    pub(super) times: Times,
    pub(super) nice: i64,
    pub(super) is_of_kernel: bool,
    /// For how long each of its tasks that never slept has not.
    pub(super) endless: Vec<Duration>,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Processes {
    known: HashMap<u32, Known>,
    /// The PID after which those are looked for that the limit left out.
    from: u32,
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) grown: Vec<Grown>,
    /// Processes that there was no time for.
    pub(super) n_left_out: u64,
    /// Processes with several threads whose threads there was no time for.
    pub(super) n_threads_left_out: u64,
}

/// One with several threads, of which more may have to be read.
struct Candidate {
    pid: u32,
    at: Option<usize>,
    sign: (u64, u64),
}

impl Processes {
    /// Reads all processes, as far as there is time. `before` is when that was last done.
    pub(super) fn look(&mut self, host: &Host, (before, now): (Option<Moment>, Moment)) -> Look {
        let mut pids = tasks::pids(host).unwrap_or_default();
        let n = pids.len();
        self.order(&mut pids);
        // To list them all is in the sensor's rest, and leaves the time for looking as it is.
        let effort = Effort::begin();
        let mut reader = Reader {
            host,
            before,
            now,
            buffer: Vec::new(),
        };
        let mut look = Look::default();
        let mut candidates = Vec::new();
        let mut read = HashMap::new();
        for (at, pid) in pids.iter().enumerate() {
            if at > 0 && at.is_multiple_of(LOOKS) && effort.has_taken(FOR_PROCESSES) {
                look.n_left_out = (n - at) as u64;
                break;
            }
            let known = self.known.remove(pid);
            let was_known = known.is_some();
            if !was_known {
                self.from = *pid;
            }
            let Some((known, grown)) = reader.process(*pid, known) else {
                continue;
            };
            let of_grown = grown.as_ref().map(|_| look.grown.len());
            if known.n_threads > 1 {
                let sign = match &grown {
                    Some(grown) => (grown.times.ran_ns, grown.times.waited_ns),
                    // What it ever did is the only sign there is.
                    None => (known.ran, 0),
                };
                candidates.push(Candidate {
                    pid: *pid,
                    at: of_grown,
                    sign,
                });
            }
            look.grown.extend(grown);
            // Of too many, those that do nothing make room for others.
            read.insert(*pid, (known, was_known));
        }
        self.known = read
            .into_iter()
            .filter(|(_, (known, was_known))| look.n_left_out == 0 || known.is_active || !was_known)
            .map(|(pid, (known, _))| (pid, known))
            .collect();
        self.read_threads(&mut reader, candidates, &mut look, &effort);
        look
    }

    /// Those that were read last come first: what they did since can be told.
    fn order(&self, pids: &mut [u32]) {
        let begin = self.from;
        pids.sort_by_key(|pid| (!self.known.contains_key(pid), *pid <= begin, *pid));
    }

    /// The threads of those that ran or waited most by the cheap sign.
    fn read_threads(
        &mut self,
        reader: &mut Reader<'_>,
        mut candidates: Vec<Candidate>,
        look: &mut Look,
        effort: &Effort,
    ) {
        candidates.retain(|one| one.sign != (0, 0));
        candidates.sort_by_key(|one| (std::cmp::Reverse(one.sign), one.pid));
        let mut left = MAX_THREADS;
        for (n_done, one) in candidates.iter().enumerate() {
            if left == 0 || effort.has_taken(1.0) {
                look.n_threads_left_out = (candidates.len() - n_done) as u64;
                break;
            }
            let Some(known) = self.known.get_mut(&one.pid) else {
                continue;
            };
            let most = left.min(MAX_THREADS_OF_ONE);
            let Some((n, grown)) = reader.threads(one.pid, known, most) else {
                continue;
            };
            left = left.saturating_sub(n);
            let of_process = one.at.and_then(|at| look.grown.get_mut(at));
            if let (Some(of_process), Some(grown)) = (of_process, grown) {
                of_process.take(grown);
            }
        }
    }

    /// Nothing is kept while all is quiet.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

impl Grown {
    /// Takes what its threads say one by one. Those that exited are only in the run time of all.
    fn take(&mut self, of_threads: Grown) {
        self.times = Times {
            ran_ns: self.times.ran_ns.max(of_threads.times.ran_ns),
            waited_ns: of_threads.times.waited_ns,
        };
        self.endless = of_threads.endless;
    }
}

/// Reads processes at one moment.
struct Reader<'h> {
    host: &'h Host,
    before: Option<Moment>,
    now: Moment,
    buffer: Vec<u8>,
}

impl Reader<'_> {
    /// One that went away in between is no gap. Nothing has grown of one that was not known and
    /// had begun before.
    fn process(&mut self, pid: u32, known: Option<Known>) -> Option<(Known, Option<Grown>)> {
        let times = self.schedstat(&format!("{pid}/schedstat"))?;
        if let Some(mut known) = known {
            let is_quiet = known.main.times == times && known.n_threads <= 1;
            let stat = if is_quiet {
                None
            } else {
                Some(self.stat(pid)?)
            };
            match stat {
                None => {
                    known.is_active = false;
                    return Some((known, None));
                }
                Some(stat) if stat.started == known.started => {
                    let grown = self.go_on(pid, &mut known, times, &stat);
                    return Some((known, Some(grown)));
                }
                // Its PID is that of another now.
                Some(_) => {}
            }
        }
        let stat = self.stat(pid)?;
        let begun = self.before.filter(|before| started(&stat) > *before);
        let main = match begun {
            Some(before) => Task::begun(before),
            None => Task::new(times, self.now),
        };
        let mut known = Known {
            started: stat.started,
            n_threads: stat.n_threads,
            main,
            ran: if begun.is_some() { 0 } else { stat.ran },
            threads: Threads {
                known: HashMap::new(),
                are_all: begun.is_some(),
                until: begun,
            },
            is_active: false,
        };
        let grown = begun.map(|_| self.go_on(pid, &mut known, times, &stat));
        Some((known, grown))
    }

    fn go_on(&self, pid: u32, known: &mut Known, times: Times, stat: &Stat) -> Grown {
        let (mut grown, endless) = known.main.go_on(times, self.now);
        let ran = stat.ran.saturating_sub(known.ran).saturating_mul(TICK_NS);
        if stat.n_threads > 1 || known.n_threads > 1 {
            grown.ran_ns = grown.ran_ns.max(ran);
        }
        known.ran = stat.ran;
        known.n_threads = stat.n_threads;
        known.is_active = grown.sum_ns() > 0;
        if !known.is_active && known.threads.until == self.before {
            // By that sign its threads did nothing either.
            known.threads.until = Some(self.now);
        }
        Grown {
            pid,
            times: grown,
            nice: stat.nice,
            is_of_kernel: stat.is_of_kernel,
            endless: endless.into_iter().collect(),
        }
    }

    /// Reads the threads of a process: how many, and what they did since the last look where that
    /// is known.
    fn threads(
        &mut self,
        pid: u32,
        known: &mut Known,
        most: usize,
    ) -> Option<(usize, Option<Grown>)> {
        let ids = tasks::threads(self.host, pid).ok()?;
        let n = ids.len().min(most);
        let before = self.before.filter(|at| known.threads.until == Some(*at));
        let mut grown = Grown::default();
        let mut now = HashMap::with_capacity(n);
        for id in ids.iter().take(n) {
            let Some(times) = self.schedstat(&format!("{pid}/task/{id}/schedstat")) else {
                continue;
            };
            let earlier = before.and_then(|before| match known.threads.known.get(id) {
                Some(task) => Some(*task),
                None => known.threads.are_all.then(|| Task::begun(before)),
            });
            let mut task = earlier.unwrap_or(Task::new(times, self.now));
            if earlier.is_some() {
                let (times, endless) = task.go_on(times, self.now);
                grown.times.add(times);
                grown.endless.extend(endless);
            }
            now.insert(*id, task);
        }
        known.threads = Threads {
            known: now,
            are_all: n == ids.len(),
            until: Some(self.now),
        };
        Some((n, before.map(|_| grown)))
    }

    fn schedstat(&mut self, below: &str) -> Option<Times> {
        let path = self.host.proc(below).ok()?;
        self.host.read_into(path, &mut self.buffer).ok()?;
        parse(&self.buffer)
    }

    fn stat(&mut self, pid: u32) -> Option<Stat> {
        let path = self.host.proc(&format!("{pid}/stat")).ok()?;
        self.host.read_into(path, &mut self.buffer).ok()?;
        Stat::parse(&self.buffer)
    }
}

fn started(stat: &Stat) -> Moment {
    Moment::from_ns(stat.started.saturating_mul(TICK_NS))
}

#[cfg(test)]
mod tests;
