//! Tasks that stay in uninterruptible sleep (state D), or wait for a FUSE server, by the kernel
//! function they wait in.
//!
//! A scan finds candidates; only these are read again at every poll. One that has run since,
//! which its context switches show, is not stuck: ordinary I/O sleeps and wakes many times a
//! second. When a candidate ran last, where the kernel tells, is when its sleep began.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sexton_host::Host;
use sexton_model::fact::process::{BlockedTask, BlockedTasks};
use sexton_model::moment::Moment;
use sexton_model::text::escape;

use super::freezer::Freezer;
use super::fuse;
use super::scan::Id;
use crate::tasks::{self, Belongs, Stat};

/// Candidates that are followed. More of them wait for few different things.
const MAX_FOLLOWED: usize = 512;

/// From here on a sleep is told.
const LEAST_TOLD: Duration = Duration::from_secs(5);

/// Tasks that are named for each function they wait in.
const MAX_NAMED: usize = 8;

/// Functions for which a record is made.
const MAX_GROUPS: usize = 16;

/// Where older kernels have the tasks of a frozen cgroup sleep, wherever its hierarchy is mounted.
const FROZEN: &str = "__refrigerator";

/// Where the kernel does not say what a task waits in.
const UNKNOWN: &str = "unknown";

/// The candidates from poll to poll.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    followed: HashMap<Id, Sleep>,
    told: BTreeMap<String, Told>,
}

/// A task that sleeps.
#[derive(Debug, Clone, Copy)]
struct Sleep {
    since: Moment,
    switches: u64,
    is_of_kernel: bool,
}

/// What was last told of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    n: usize,
    longest: Duration,
}

impl Blocked {
    /// How many tasks are followed.
    pub(super) fn len(&self) -> usize {
        self.followed.len()
    }

    /// Takes what a scan found.
    pub(super) fn add(&mut self, host: &Host, now: Moment, found: &[Id]) {
        for id in found {
            if self.followed.len() >= MAX_FOLLOWED {
                return;
            }
            if !self.followed.contains_key(id)
                && let Some(mut sleep) = look(host, *id, now)
            {
                sleep.since = ran_last(host, id.pid, now).unwrap_or(now);
                self.followed.insert(*id, sleep);
            }
        }
    }

    /// Looks at those it follows, and returns what is new of each function.
    pub(super) fn update(&mut self, host: &Host, now: Moment) -> Vec<(String, BlockedTasks)> {
        self.followed.retain(|id, sleep| {
            let Some(seen) = look(host, *id, now) else {
                return false;
            };
            if seen.switches != sleep.switches {
                *sleep = seen;
            }
            true
        });
        let groups = self.groups(host, now);
        let mut news = Vec::new();
        for (wait, group) in groups.iter().take(MAX_GROUPS) {
            let longest = now.since(group[0].1.since);
            let told = Told {
                n: group.len(),
                longest,
            };
            let before = self.told.get(wait);
            // A shorter one is another task's: the one that was told has ended.
            let is_news = before.is_none_or(|before| {
                before.n != told.n || longest >= 2 * before.longest || longest < before.longest
            });
            if is_news {
                news.push((wait.clone(), describe(host, group, longest)));
                self.told.insert(wait.clone(), told);
            }
        }
        let gone = |wait: &String| !groups.contains_key(wait);
        let over: Vec<String> = self
            .told
            .keys()
            .filter(|wait| gone(wait))
            .cloned()
            .collect();
        for wait in over {
            self.told.remove(&wait);
            news.push((wait, BlockedTasks::default()));
        }
        news
    }

    /// Those that have slept long enough, the longest first, by what they wait in.
    fn groups(&self, host: &Host, now: Moment) -> BTreeMap<String, Vec<(Id, Sleep)>> {
        let mut groups: BTreeMap<String, Vec<(Id, Sleep)>> = BTreeMap::new();
        let mut freezer = Freezer::new(host);
        for (id, sleep) in &self.followed {
            if now.since(sleep.since) < LEAST_TOLD {
                continue;
            }
            let wait = wait_of(host, id.pid);
            if wait != FROZEN && !freezer.holds(host, id.pid) {
                groups.entry(wait).or_default().push((*id, *sleep));
            }
        }
        for group in groups.values_mut() {
            group.sort_by_key(|(id, sleep)| (sleep.since, id.pid));
        }
        groups
    }
}

/// A task that is in state D or waits for a FUSE server; `None` when it does not, or is gone.
fn look(host: &Host, id: Id, now: Moment) -> Option<Sleep> {
    let stat = host
        .read(host.proc(&format!("{}/stat", id.pid)).ok()?)
        .ok()?;
    let stat = Stat::parse(&stat)?;
    let waits = stat.is_blocked() || waits_for_fuse(host, id.pid, &stat);
    if !waits || stat.started != id.started {
        return None;
    }
    let status = host.read_text(host.proc(&format!("{}/status", id.pid)).ok()?);
    Some(Sleep {
        since: now,
        switches: switches(&status.ok()?)?,
        is_of_kernel: stat.is_of_kernel,
    })
}

/// When a task ran last. The clock of `/proc/PID/sched` is the scheduler's own; what it says of
/// ourselves is now.
fn ran_last(host: &Host, tid: u32, now: Moment) -> Option<Moment> {
    let ran = |task: &str| {
        let path = host.proc(&format!("{task}/sched")).ok()?;
        exec_start(&host.read_text(path).ok()?)
    };
    let slept = ran("thread-self")?.checked_sub(ran(&tid.to_string())?)?;
    let slept = u64::try_from(slept.as_nanos()).ok()?;
    Some(Moment::from_ns(now.as_ns().saturating_sub(slept)))
}

/// The time in a `/proc/PID/sched`, in milliseconds: `se.exec_start   :   14241818.934298`.
pub(super) fn exec_start(sched: &str) -> Option<Duration> {
    let line = sched
        .lines()
        .find(|line| line.starts_with("se.exec_start"))?;
    let (_, value) = line.split_once(':')?;
    let milliseconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

/// How often a task has given up its core or lost it.
pub(super) fn switches(status: &str) -> Option<u64> {
    let field = |name: &str| {
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u64>().ok()
    };
    let own = field("voluntary_ctxt_switches:")?;
    Some(own.saturating_add(field("nonvoluntary_ctxt_switches:")?))
}

/// Whether a task waits for a FUSE server to answer.
pub(super) fn waits_for_fuse(host: &Host, tid: u32, stat: &Stat) -> bool {
    stat.state == b'S' && wait_of(host, tid) == fuse::WAIT
}

/// The kernel function that a task waits in. Only root is told.
fn wait_of(host: &Host, tid: u32) -> String {
    let path = host.proc(&format!("{tid}/wchan"));
    let text = path.and_then(|path| host.read_text(path)).ok();
    let name = text.as_deref().map(str::trim).map(plain);
    match name {
        Some(name) if !name.is_empty() && name != "0" => escape(name.as_bytes()),
        _ => UNKNOWN.into(),
    }
}

/// Without what a compiler appends: `.constprop.0`, `.isra.0`.
fn plain(function: &str) -> &str {
    match function.split_once('.') {
        Some((name, _)) if !name.is_empty() => name,
        _ => function,
    }
}

/// The functions of a `/proc/PID/stack`, which has lines such as
/// `[<0>] kernel_clone+0x1af/0x3e0`, innermost first.
pub(super) fn frames(stack: &str) -> Vec<String> {
    const MAX_FRAMES: usize = 24;
    let names = stack.lines().filter_map(|line| {
        let (_, place) = line.split_once("] ")?;
        let name = place.split(['+', ' ']).next()?;
        (!name.is_empty()).then(|| escape(plain(name).as_bytes()))
    });
    names.take(MAX_FRAMES).collect()
}

fn describe(host: &Host, group: &[(Id, Sleep)], longest: Duration) -> BlockedTasks {
    let (first, sleep) = group[0];
    let stack = host.proc(&format!("{}/stack", first.pid));
    let stack = stack.and_then(|path| host.read_text(path)).ok();
    let named = group.iter().take(MAX_NAMED);
    BlockedTasks {
        n: group.len() as u64,
        n_of_kernel: group.iter().filter(|(_, sleep)| sleep.is_of_kernel).count() as u64,
        longest_ns: u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX),
        since_ns: sleep.since.as_ns(),
        stack: stack.map_or(Vec::new(), |stack| frames(&stack)),
        tasks: named.map(|(id, _)| name(host, id.pid)).collect(),
    }
}

fn name(host: &Host, tid: u32) -> BlockedTask {
    let home = Belongs::of(host, tid);
    BlockedTask {
        tid,
        comm: tasks::comm(host, tid),
        cgroup: home.cgroup,
        unit: home.unit,
        container: home.container,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_both_kinds_count() {
        let status = "State:\tD\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(switches(status), Some(42));
        assert_eq!(switches("voluntary_ctxt_switches:\t40\n"), None);
    }

    #[test]
    fn when_a_task_ran_last_is_read() {
        let sched = "cat (27000, #threads: 1)\n-----\n\
                     se.exec_start                                :         12500.250000\n\
                     se.vruntime                                  :         11408.952084\n";
        assert_eq!(exec_start(sched), Some(Duration::from_micros(12_500_250)));
        for text in [
            "",
            "se.exec_start : x",
            "se.exec_start : -1.0",
            "se.exec_start : 1e400",
        ] {
            assert_eq!(exec_start(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_stack_innermost_first() {
        let stack = "[<0>] rpc_wait_bit_killable.isra.0+0x11/0x60 [sunrpc]\n\
                     [<0>] nfs4_call_sync+0x4/0x9\n\nnonsense\n";
        assert_eq!(frames(stack), ["rpc_wait_bit_killable", "nfs4_call_sync"]);
    }
}
