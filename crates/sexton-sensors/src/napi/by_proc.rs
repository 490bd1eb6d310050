//! Waits of network polling without BPF: `/proc` of the threads that poll.
//!
//! Soft interrupts that a busy core cannot serve are left to its `ksoftirqd`, and threaded NAPI
//! has threads of its own. One that could run, and has had no turn since the last poll, waits;
//! once it has run, its `schedstat` tells for how long. `ksoftirqd` serves timers and RCU as well:
//! whether the network was served tells `/proc/softirqs`. Who had the core meanwhile is sampled
//! by events of perf, where these are allowed.
//! Blind to: soft interrupts on a core that holds them off without waking its `ksoftirqd`; waits
//! between two polls.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sexton_host::{Host, process};
use sexton_model::fact::napi as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::sampled::Sampled;
use super::softirqs::Softirqs;
use super::stalls::{Ended, Stalls, Told, Wait, Waiter};
use super::{NAME, delay_of, is_long, tell};
use crate::symbols::Symbols;
use crate::{Sensor, bpf, tasks};

/// Polls between two looks for new threads, and between two samples.
const POLLS_PER_SEARCH: u64 = 40;
const POLLS_PER_SAMPLE: u64 = 4;

/// Threads that are followed: one for each core and queue.
const MAX_THREADS: usize = 1024;

/// How often a core is sampled to name what holds it.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// The sensor.
pub(super) struct ByProc {
    /// By their number.
    threads: BTreeMap<u32, Thread>,
    /// Processes that poll nothing.
    others: HashSet<u32>,
    softirqs: Softirqs,
    stalls: Stalls,
    sampled: Option<Sampled>,
    symbols: Symbols,
    n_polls: u64,
    /// Why there is no BPF program, until it is said.
    instead: Option<Gap>,
    /// Why no holder is named, until it is said.
    unnamed: Option<Gap>,
}

/// A thread that polls.
#[derive(Debug)]
struct Thread {
    waiter: Waiter,
    turns: Option<Turns>,
}

/// What a thread had of its core when it was looked at, and the moment it was first seen so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turns {
    since_ns: u64,
    cpu: u32,
    ran_ns: u64,
    waited_ns: u64,
    n: u64,
}

impl ByProc {
    /// Ready, or why this is not possible either.
    pub(super) fn open(host: &Host, instead: Gap) -> Result<Self, Gap> {
        let closed = |why: &str| {
            let gap = bpf::not_without("delays of network polling", instead.clone());
            let text = format!("{}; by /proc: {why}", gap.text);
            Gap { text, ..gap }
        };
        if !process::numbers_are_the_kernels(host) {
            return Err(closed("only in the host's PID namespace"));
        }
        let mut by_proc = Self {
            threads: BTreeMap::new(),
            others: HashSet::new(),
            softirqs: Softirqs::default(),
            stalls: Stalls::default(),
            sampled: None,
            symbols: Symbols::default(),
            n_polls: 0,
            instead: None,
            unnamed: None,
        };
        by_proc.search(host);
        let first = by_proc.threads.keys().next();
        let Some(first) = first else {
            return Err(closed("no ksoftirqd thread is seen here"));
        };
        if read_turns(host, *first, 0, 0).is_none() {
            return Err(closed("the kernel keeps no schedstat of tasks"));
        }
        match Sampled::open(host) {
            Ok(sampled) => by_proc.sampled = Some(sampled),
            Err(error) => {
                let text = format!("the task that holds a core is not named: {error}");
                let gap = Gap::new(NAME, Why::Denied, text);
                by_proc.unnamed = Some(gap.with_remedy("allow the perf_event_open() system call"));
            }
        }
        by_proc.instead = Some(instead);
        Ok(by_proc)
    }

    /// How the task that holds a core is named, for `sexton doctor`.
    pub(super) fn names_holders(&self) -> Result<(), &Gap> {
        self.unnamed.as_ref().map_or(Ok(()), Err)
    }

    /// Looks for threads that poll, by their names.
    fn search(&mut self, host: &Host) {
        let Ok(entries) = host.proc("").and_then(|path| host.list(path)) else {
            return;
        };
        let number = |name: &std::ffi::OsStr| name.to_str()?.parse::<u32>().ok();
        let now: HashSet<u32> = entries.iter().filter_map(|e| number(&e.name)).collect();
        self.others.retain(|pid| now.contains(pid));
        self.threads.retain(|pid, _| now.contains(pid));
        for pid in now {
            if self.others.contains(&pid) || self.threads.contains_key(&pid) {
                continue;
            }
            let comm = tasks::comm(host, pid).unwrap_or_default();
            match waiter(pid, &comm).filter(|_| self.threads.len() < MAX_THREADS) {
                Some(waiter) => {
                    let turns = None;
                    self.threads.insert(pid, Thread { waiter, turns });
                }
                None => {
                    self.others.insert(pid);
                }
            }
        }
    }

    /// Waits that go on, and those that have ended since the last poll.
    fn look(&mut self, host: &Host, now_ns: u64) -> (Vec<Wait>, Vec<Wait>) {
        let (mut live, mut ended) = (Vec::new(), Vec::new());
        let softirqs = &mut self.softirqs;
        softirqs.look(host, now_ns);
        for (pid, thread) in &mut self.threads {
            let is_ksoftirqd = thread.waiter == Waiter::Ksoftirqd;
            let place = tasks::place(host, *pid);
            let runnable = place.filter(|place| place.is_runnable);
            let last = thread.turns;
            // An idle thread is read once only.
            let turns = match (runnable, last) {
                (None, None) => None,
                _ => read_turns(host, *pid, now_ns, place.map_or(0, |place| place.cpu)),
            };
            let going_on = last.filter(|last| turns.is_some_and(|now| last.had_no_turn(&now)));
            let going_on = going_on.filter(|_| runnable.is_some());
            if let Some(last) = going_on {
                if is_ksoftirqd && softirqs.served_since(last.cpu, last.since_ns) {
                    // By interrupts: what waits from now on is new.
                    let since_ns = now_ns;
                    thread.turns = Some(Turns { since_ns, ..last });
                } else if !is_ksoftirqd || softirqs.may_wait(last.cpu, last.since_ns) {
                    live.push(wait(thread, last, None));
                }
                continue;
            }
            let had_work =
                |last: &Turns| !is_ksoftirqd || softirqs.may_have_served(last.cpu, last.since_ns);
            if let (Some(last), Some(turns)) = (last.filter(had_work), turns) {
                let at_ns = last.until_ns(&turns, now_ns);
                let holder = None;
                ended.push(wait(thread, last, Some(Ended { at_ns, holder })));
            }
            thread.turns = turns.filter(|_| runnable.is_some());
        }
        (live, ended)
    }

    fn sample(&self, live: &[Wait], out: &mut Sink) {
        let now_ns = out.now().as_ns();
        let mut oldest: BTreeMap<u32, u64> = BTreeMap::new();
        for wait in live {
            let age_ns = now_ns.saturating_sub(wait.since_ns);
            let known = oldest.entry(wait.cpu).or_default();
            *known = age_ns.max(*known);
        }
        for (cpu, age_ns) in &oldest {
            out.sample(&Subject::cpu(*cpu), &fact::NAPI_WAIT_NS, *age_ns as f64);
        }
        let node = oldest.values().copied().max().unwrap_or(0);
        out.sample(&Subject::node(), &fact::NAPI_WAIT_NS, node as f64);
    }

    fn tell(&mut self, host: &Host, told: &Told, out: &mut Sink) {
        let wait = told.wait();
        let end_ns = wait.ended.as_ref().map_or(out.now().as_ns(), |e| e.at_ns);
        let sampled = self.sampled.as_ref();
        let held = sampled.and_then(|sampled| sampled.holder(wait.cpu, wait.since_ns..=end_ns));
        let (holder, frames) = held.unzip();
        let mut delay = delay_of(host, wait, holder.as_ref(), end_ns);
        if let (Told::Starved(_), Some(frames)) = (told, frames) {
            delay.stack = self.symbols.stack(host, &frames);
        }
        tell(told, delay, end_ns, out);
    }
}

impl Sensor for ByProc {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        if let Some(instead) = self.instead.take() {
            let by = "/proc of the threads that poll";
            bpf::tell_step_down("waits of network polling", by, &instead, out);
        }
        if let Some(gap) = self.unnamed.take() {
            out.gap(&Subject::node(), gap);
        }
        self.n_polls += 1;
        if self.n_polls.is_multiple_of(POLLS_PER_SEARCH) {
            self.search(host);
        }
        if let Some(sampled) = &mut self.sampled {
            sampled.drain(host);
        }
        let now_ns = out.now().as_ns();
        let (live, ended) = self.look(host, now_ns);
        if self.n_polls.is_multiple_of(POLLS_PER_SAMPLE) {
            self.sample(&live, out);
        }
        let starved = live.into_iter().filter(|wait| is_long(wait, now_ns, 1));
        let served = ended.into_iter().filter(|wait| {
            let until_ns = wait.ended.as_ref().map_or(now_ns, |ended| ended.at_ns);
            is_long(wait, until_ns, 1)
        });
        for told in self.stalls.step(starved.collect(), served.collect()) {
            self.tell(host, &told, out);
        }
    }
}

fn waiter(pid: u32, comm: &str) -> Option<Waiter> {
    if comm.starts_with("napi/") {
        return Some(Waiter::Thread(pid));
    }
    comm.starts_with("ksoftirqd/").then_some(Waiter::Ksoftirqd)
}

fn wait(thread: &Thread, turns: Turns, ended: Option<Ended>) -> Wait {
    Wait {
        waiter: thread.waiter.clone(),
        cpu: turns.cpu,
        since_ns: turns.since_ns,
        ended,
    }
}

impl Turns {
    /// Whether it has not had the core since. Time on it is counted at each tick, a turn when it
    /// begins.
    fn had_no_turn(&self, later: &Turns) -> bool {
        (self.ran_ns, self.n) == (later.ran_ns, later.n)
    }

    /// When the wait that was seen ended, given what is so at `now_ns`. The wait may have begun
    /// before it was seen, and so be counted as longer than it was seen to be.
    fn until_ns(&self, later: &Turns, now_ns: u64) -> u64 {
        let waited_ns = later.waited_ns.saturating_sub(self.waited_ns);
        self.since_ns.saturating_add(waited_ns).min(now_ns)
    }
}

/// What the scheduler has counted of a task; `None` where it counts nothing, or the task is gone.
fn read_turns(host: &Host, pid: u32, now_ns: u64, cpu: u32) -> Option<Turns> {
    let path = host.proc(&format!("{pid}/schedstat")).ok()?;
    let text = host.read_text(path).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some(Turns {
        since_ns: now_ns,
        cpu,
        ran_ns: numbers.next()??,
        waited_ns: numbers.next()??,
        n: numbers.next()??,
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex};

    use sexton_host::{Entry, Root};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A node with a `ksoftirqd` of core 1, whose state, turns and packets change.
    #[derive(Clone, Default)]
    struct Node(Arc<Mutex<(char, String, u64)>>);

    impl Node {
        fn set(&self, state: char, schedstat: &str, n_received: u64) {
            *self.0.lock().expect("no panic") = (state, schedstat.to_owned(), n_received);
        }
    }

    impl Root for Node {
        fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
            let (state, schedstat, n_received) = self.0.lock().expect("no panic").clone();
            let zeros = "0 ".repeat(35);
            Ok(match path.to_str().expect("plain") {
                "/proc/self/mountinfo" => "22 1 0:5 / /proc rw - proc proc rw\n".to_owned(),
                "/proc/16/comm" => "ksoftirqd/1\n".to_owned(),
                "/proc/17/comm" => "kworker/1:0\n".to_owned(),
                "/proc/16/stat" => format!("16 (ksoftirqd/1) {state} {zeros}1 0 0"),
                "/proc/16/schedstat" => schedstat,
                "/proc/softirqs" => format!("CPU0 CPU1\nNET_TX: 3 3\nNET_RX: 9 {n_received}\n"),
                _ => return Err(io::ErrorKind::NotFound.into()),
            }
            .into_bytes())
        }
        fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
            let folder = |name: &str| Entry {
                name: name.into(),
                is_dir: true,
            };
            Ok(["16", "17", "self"].map(folder).into())
        }
        fn read_link(&self, _: &Path) -> io::Result<PathBuf> {
            Ok(PathBuf::from("pid:[4026531836]"))
        }
        fn is_live(&self) -> bool {
            false
        }
    }

    /// Polls of 250 ms, each with the state of the thread, its `schedstat` and the receive softirqs
    /// of its core so far; waits that go on and that ended, in milliseconds.
    #[track_caller]
    fn check(polls: &[(char, &str, u64)], expected: &[(Option<u64>, Option<u64>)]) {
        let node = Node::default();
        node.set('S', "0 0 0", 0);
        let host = Host::new(Box::new(node.clone())).expect("a mount table");
        let gap = Gap::new(NAME, Why::Unsupported, "no BTF");
        let mut by_proc = ByProc::open(&host, gap).expect("a thread");
        assert_eq!(by_proc.threads.len(), 1);
        by_proc.look(&host, 0);
        for (n, ((state, schedstat, n_received), expected)) in (1..).zip(polls.iter().zip(expected))
        {
            node.set(*state, schedstat, *n_received);
            let now_ns = n * 250 * MS;
            let (live, ended) = by_proc.look(&host, now_ns);
            let live = live.first().map(|wait| (now_ns - wait.since_ns) / MS);
            let ended = ended.first().map(|wait| {
                let at_ns = wait.ended.as_ref().map_or(0, |ended| ended.at_ns);
                assert_eq!(wait.cpu, 1);
                (at_ns - wait.since_ns) / MS
            });
            assert_eq!((live, ended), *expected, "poll {n}");
        }
    }

    #[test]
    fn a_thread_that_could_run_and_has_no_turn_waits() {
        check(
            &[
                ('R', "5000 7000 3", 1),
                ('R', "5000 7000 3", 1),
                ('R', "5000 7000 3", 1),
                // It got its turn after 700 ms, of which it was seen to wait 600.
                ('S', "6000 600007000 4", 2),
                ('S', "6000 600007000 4", 2),
            ],
            &[
                (None, None),
                (Some(250), None),
                (Some(500), None),
                (None, Some(600)),
                (None, None),
            ],
        );
    }

    #[test]
    fn a_ksoftirqd_that_waits_for_a_timer_keeps_no_polling_waiting() {
        // Its core has not received anything for as long as it was watched.
        check(
            &[
                ('R', "5000 7000 3", 0),
                ('R', "5000 7000 3", 0),
                ('S', "6000 600007000 4", 0),
            ],
            &[(None, None); 3],
        );
    }

    #[test]
    fn interrupts_that_serve_the_network_meanwhile_end_a_wait() {
        check(
            &[
                ('R', "5000 7000 3", 1),
                ('R', "5000 7000 3", 1),
                ('R', "5000 7000 3", 2),
                ('R', "5000 7000 3", 2),
            ],
            &[
                (None, None),
                (Some(250), None),
                (None, None),
                (Some(250), None),
            ],
        );
    }

    #[test]
    fn a_thread_that_runs_does_not_wait() {
        check(
            &[
                ('R', "5000 7000 3", 1),
                ('R', "240005000 7000 3", 2),
                ('R', "480005000 8000 9", 3),
                ('S', "480005000 8000 9", 4),
            ],
            &[
                (None, None),
                (None, Some(0)),
                (None, Some(0)),
                (None, Some(0)),
            ],
        );
    }

    #[test]
    fn an_idle_thread_is_not_asked_for_its_turns() {
        check(&[('S', "not read", 0), ('S', "", 0)], &[(None, None); 2]);
    }
}
