//! Which processes run and which wait for a core, while tasks wait for one much of the time.
//!
//! Source: `schedstat` of every process, read only while the node's pressure asks for it, every
//! few seconds, within a bound of processes and of time; names and cgroups only of the few that
//! are told.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_model::fact::pressure::{CPU_TASK, CpuTask};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text;

use super::NAME;
use super::psi::lost;
use crate::lineage::Lineage;
use crate::tasks;

/// Processes are looked at while tasks wait for a CPU this part of the time.
///
/// Chosen: one task that waits for a quarter of its time has 0.25, the least that CPU003 calls
/// suffering.
const ASKS: f64 = 0.25;

/// How often they are looked at.
const EVERY: Duration = Duration::from_secs(5);

/// Processes that one look reads.
const MAX_PROCESSES: usize = 4096;

/// CPU time that one look may take.
const MAX_CPU: Duration = Duration::from_millis(50);

/// Between two looks at the clock.
const LOOKS: usize = 64;

/// Processes that are told of one interval: those that ran most, and those that waited most.
const MAX_TOLD: usize = 12;

/// One that ran and waited for a smaller part of the interval is not told.
const LEAST: f64 = 0.02;

/// What the kernel says of a task since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    ran_ns: u64,
    waited_ns: u64,
}

/// What has been read.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pressure: Option<(Moment, u64)>,
    looked: Option<Moment>,
    before: HashMap<u32, Times>,
}

impl Tasks {
    /// One poll: when the node's pressure was read, and all time that tasks waited so far.
    pub(super) fn poll(&mut self, host: &Host, pressure: Option<(Moment, u64)>, out: &mut Sink) {
        let before = std::mem::replace(&mut self.pressure, pressure);
        let (Some((from, less)), Some((to, more))) = (before, pressure) else {
            return self.rest();
        };
        let is_much = lost(less, more, to.since(from)).is_some_and(|ratio| ratio >= ASKS);
        let is_due = |at: Moment| out.now().since(at) >= EVERY;
        match (self.looked, is_much) {
            (None, false) => {}
            // What was seen so far is told up to here, and then it rests.
            (Some(_), false) => self.rest(),
            (None, true) => self.look(host, out),
            (Some(at), true) if is_due(at) => self.look(host, out),
            (Some(_), true) => {}
        }
    }

    /// Forgets all, so that nothing is kept while all is quiet.
    fn rest(&mut self) {
        self.looked = None;
        self.before = HashMap::new();
    }

    fn look(&mut self, host: &Host, out: &mut Sink) {
        let Some(now) = read(host, out) else {
            return;
        };
        let before = std::mem::replace(&mut self.before, now);
        if let Some(at) = self.looked.replace(out.now()) {
            let interval = out.now().since(at);
            for (pid, times) in most(&before, &self.before, interval) {
                tell(host, pid, times, interval, out);
            }
        }
    }
}

/// All processes, as far as there is time.
fn read(host: &Host, out: &mut Sink) -> Option<HashMap<u32, Times>> {
    let folder = host.proc("").ok()?;
    let entries = host.list(&folder).ok()?;
    let pids = entries.iter().filter_map(|entry| entry.name.to_str());
    let pids: Vec<u32> = pids.filter_map(|name| name.parse().ok()).collect();
    let began = clock::thread_cpu_time();
    let is_over = || clock::thread_cpu_time().saturating_sub(began) >= MAX_CPU;
    let mut read = HashMap::new();
    let mut buffer = Vec::new();
    for (at, pid) in pids.iter().enumerate() {
        if at >= MAX_PROCESSES || (at > 0 && at.is_multiple_of(LOOKS) && is_over()) {
            let n = (pids.len() - at) as u64;
            let text = format!("{n} processes were not asked how long they waited for a core");
            out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(n), text));
            break;
        }
        read.extend(times(host, &folder, *pid, &mut buffer).map(|times| (*pid, times)));
    }
    Some(read)
}

/// One that went away in between is no gap.
fn times(host: &Host, folder: &Path, pid: u32, buffer: &mut Vec<u8>) -> Option<Times> {
    let path = folder.join(pid.to_string()).join("schedstat");
    host.read_into(path, buffer).ok()?;
    parse(buffer)
}

/// `ran waited slices`, in nanoseconds, see Documentation/scheduler/sched-stats.rst.
fn parse(schedstat: &[u8]) -> Option<Times> {
    let mut words = std::str::from_utf8(schedstat)
        .ok()?
        .split_ascii_whitespace();
    Some(Times {
        ran_ns: words.next()?.parse().ok()?,
        waited_ns: words.next()?.parse().ok()?,
    })
}

/// Those that ran most and those that waited most since the last look. One that began since has
/// done all of it since.
fn most(
    before: &HashMap<u32, Times>,
    now: &HashMap<u32, Times>,
    interval: Duration,
) -> Vec<(u32, Times)> {
    let least = (interval.as_nanos() as f64 * LEAST) as u64;
    let mut grown: Vec<(u32, Times)> = now
        .iter()
        .map(|(pid, now)| {
            let old = before.get(pid).copied().unwrap_or_default();
            let grown = Times {
                ran_ns: now.ran_ns.saturating_sub(old.ran_ns),
                waited_ns: now.waited_ns.saturating_sub(old.waited_ns),
            };
            (*pid, grown)
        })
        .filter(|(_, times)| times.ran_ns.saturating_add(times.waited_ns) >= least)
        .collect();
    grown.sort_by_key(|(pid, times)| (u64::MAX - times.waited_ns, *pid));
    let mut told: Vec<_> = grown.iter().copied().take(MAX_TOLD).collect();
    grown.sort_by_key(|(pid, times)| (u64::MAX - times.ran_ns, *pid));
    let others: Vec<_> = grown.into_iter().take(MAX_TOLD).collect();
    told.extend(
        others
            .into_iter()
            .filter(|one| !told.contains(one))
            .collect::<Vec<_>>(),
    );
    told
}

fn tell(host: &Host, pid: u32, times: Times, interval: Duration, out: &mut Sink) {
    let cgroup = tasks::cgroup(host, pid);
    let lineage = cgroup
        .as_deref()
        .map(|path| Lineage::of(&text::unescape(path)));
    let lineage = lineage.unwrap_or_default();
    let says = CpuTask {
        comm: tasks::comm(host, pid),
        cgroup,
        unit: lineage.unit,
        container: lineage.container,
        nice: tasks::place(host, pid).map(|place| place.nice),
        ran_ns: times.ran_ns,
        waited_ns: times.waited_ns,
        interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
        own: (pid == std::process::id()).then_some(true),
    };
    let subject = Subject::new(SubjectKind::Process, pid.to_string());
    out.event(out.now(), &subject, &CPU_TASK, says);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_task_are_read() {
        let times = |ran_ns, waited_ns| Some(Times { ran_ns, waited_ns });
        assert_eq!(parse(b"12 3390523 1\n"), times(12, 3_390_523));
        assert_eq!(parse(b"12\n"), None);
        assert_eq!(parse(b"\xff 1 2"), None);
    }

    #[test]
    fn those_that_ran_and_waited_most_are_told() {
        let of = |ran_ns, waited_ns| Times { ran_ns, waited_ns };
        let mut before = HashMap::from([(1, of(900, 900)), (2, of(0, 0))]);
        let mut now = HashMap::from([(1, of(905, 905)), (2, of(0, 800)), (3, of(700, 0))]);
        // Many that ran a little, none of them worth a word.
        before.extend((100..200).map(|pid| (pid, of(50, 50))));
        now.extend((100..200).map(|pid| (pid, of(55, 55))));
        let told = most(&before, &now, Duration::from_nanos(1_000));
        assert_eq!(told, [(2, of(0, 800)), (3, of(700, 0))]);
    }

    /// A pressure that rises and falls: nothing is kept when it is low.
    #[test]
    fn nothing_is_read_while_all_is_quiet() {
        let host = Host::live().expect("a mount table");
        let mut tasks = Tasks::default();
        let mut poll = |second: u64, total_us| {
            let at = Moment::from_ns(second * 1_000_000_000);
            let mut out = Sink::new(NAME, at);
            tasks.poll(&host, Some((at, total_us)), &mut out);
            tasks.before.is_empty()
        };
        assert!(poll(1, 0));
        assert!(poll(2, 10_000));
        assert!(!poll(3, 910_000));
        assert!(poll(4, 920_000));
    }
}
