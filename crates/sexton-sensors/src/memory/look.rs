//! Which memory cgroups are at their limit or wait, and which processes read pages back in.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sexton_host::process::Place;
use sexton_host::{Host, machine};
use sexton_model::fact::memory::{MEMORY_CGROUP, MEMORY_TASK, MemoryCgroup, MemoryTask};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text;

use super::NAME;
use super::cgroups::{Cgroups, State};
use crate::effort::Effort;
use crate::lineage::Lineage;
use crate::tasks::{self, Stat};

/// Looks at all processes are at least so far apart.
const LEAST_BETWEEN: Duration = Duration::from_secs(4);

/// Told after a look: those with the most trouble, and the largest.
const MAX_TOLD: usize = 6;
const MAX_LARGEST: usize = 2;

/// Looks at all processes, and what the last one saw.
pub(super) struct Look {
    cgroups: Option<Cgroups>,
    before: Option<Seen>,
    rest: Duration,
}

/// What one look saw.
struct Seen {
    at: Moment,
    processes: HashMap<Id, Process>,
    cgroups: BTreeMap<Vec<u8>, State>,
}

/// PIDs are used again; the time of the start tells one from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Id {
    pid: u32,
    started: u64,
}

struct Process {
    major_faults: u64,
    resident_pages: u64,
    cgroup: Option<Vec<u8>>,
}

impl Look {
    pub(super) fn new(host: &Host) -> Self {
        Self {
            cgroups: Cgroups::find(host),
            before: None,
            rest: Duration::ZERO,
        }
    }

    /// Looks, if there is a reason and it is time.
    pub(super) fn poll(&mut self, host: &Host, out: &mut Sink, is_asked_for: bool) {
        let now = out.now();
        let pause = LEAST_BETWEEN.max(self.rest);
        if !is_asked_for {
            // What was there before a quiet time says nothing of what comes after it.
            let is_old = |seen: &Seen| now.since(seen.at) > 2 * pause;
            self.before = self.before.take().filter(|seen| !is_old(seen));
            return;
        }
        // Polls are not exactly on time; one that is a little early counts.
        let is_early = |seen: &Seen| now.since(seen.at) < pause - LEAST_BETWEEN / 4;
        if self.before.as_ref().is_some_and(is_early) {
            return;
        }
        let effort = Effort::begin();
        let seen = self.look(host, out);
        if let Some(before) = &self.before {
            tell_cgroups(out, before, &seen);
            tell_processes(host, out, before, &seen);
        }
        self.rest = effort.rest();
        self.before = Some(seen);
    }

    fn look(&self, host: &Host, out: &mut Sink) -> Seen {
        let effort = Effort::begin();
        let mut seen = Seen {
            at: out.now(),
            processes: HashMap::new(),
            cgroups: BTreeMap::new(),
        };
        let pids = tasks::pids(host).unwrap_or_default();
        for (at, pid) in pids.iter().enumerate() {
            if effort.is_over() {
                let n = (pids.len() - at) as u64;
                let text = format!(
                    "{n} processes were not asked for their memory: a look has a time limit"
                );
                out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(n), text));
                break;
            }
            self.look_at(host, *pid, &mut seen);
        }
        seen
    }

    /// A process outside the kernel, its memory cgroup and all above, each once.
    fn look_at(&self, host: &Host, pid: u32, seen: &mut Seen) {
        let stat = host
            .proc(&format!("{pid}/stat"))
            .and_then(|path| host.read(path));
        // One that went away in between is no gap.
        let Ok(stat) = stat else { return };
        let Some((started, major_faults, resident_pages)) = faults(&stat) else {
            return;
        };
        let places = Place::read_all(host, pid).unwrap_or_default();
        let path = self.cgroups.as_ref().and_then(|all| all.path_of(&places));
        if let (Some(cgroups), Some(path)) = (&self.cgroups, path) {
            for above in with_parents(path) {
                if seen.cgroups.contains_key(above) {
                    break;
                }
                let state = cgroups.read(host, above);
                seen.cgroups
                    .extend(state.map(|state| (above.to_vec(), state)));
            }
        }
        let process = Process {
            major_faults,
            resident_pages,
            cgroup: path.map(<[u8]>::to_vec),
        };
        seen.processes.insert(Id { pid, started }, process);
    }
}

/// A path and those above it, but for the root.
fn with_parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| {
        let end = path.iter().rposition(|byte| *byte == b'/')?;
        (end > 0).then(|| &path[..end])
    })
    .filter(|path| path.len() > 1)
}

/// Start, major faults and resident pages, of a `stat`; `None` of a thread of the kernel.
pub(super) fn faults(stat: &[u8]) -> Option<(u64, u64, u64)> {
    const MAJOR_FAULTS: usize = 9;
    const RESIDENT: usize = 21;
    let known = Stat::parse(stat).filter(|stat| !stat.is_of_kernel)?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..])
        .ok()?
        .split_ascii_whitespace();
    let major_faults = fields.nth(MAJOR_FAULTS)?.parse().ok()?;
    let resident = fields.nth(RESIDENT - MAJOR_FAULTS - 1)?.parse().ok()?;
    Some((known.started, major_faults, resident))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Those with the most trouble, and of the others the largest.
fn most<T>(mut all: Vec<T>, trouble: impl Fn(&T) -> u64, size: impl Fn(&T) -> u64) -> Vec<T> {
    all.sort_by_key(|one| std::cmp::Reverse(trouble(one)));
    let n_troubled = all.iter().take_while(|one| trouble(one) > 0).count();
    let mut others = all.split_off(n_troubled.min(MAX_TOLD));
    others.sort_by_key(|one| std::cmp::Reverse(size(one)));
    others.truncate(MAX_LARGEST);
    all.extend(others);
    all
}

fn tell_cgroups(out: &mut Sink, before: &Seen, seen: &Seen) {
    let within_ns = ns(seen.at.since(before.at));
    let mut all: Vec<(&Vec<u8>, MemoryCgroup)> = Vec::new();
    for (path, now) in &seen.cgroups {
        // What a cgroup had done before it was first seen was not in this time.
        let old = before.cgroups.get(path).copied().unwrap_or(*now);
        let stalled_us = match (old.stalled_us, now.stalled_us) {
            (Some(old), Some(now)) => Some(now.saturating_sub(old)),
            _ => None,
        };
        let lineage = Lineage::of(path);
        let says = MemoryCgroup {
            unit: lineage.unit,
            container: lineage.container,
            used_bytes: now.used,
            limit_bytes: now.limit,
            limit_hits: now.hits.saturating_sub(old.hits),
            stalled_ns: stalled_us.map(|us| us.saturating_mul(1000)),
            within_ns,
        };
        all.push((path, says));
    }
    let trouble = |one: &(&Vec<u8>, MemoryCgroup)| {
        let stalled = one.1.stalled_ns.unwrap_or(0) / 1000;
        stalled.saturating_add(one.1.limit_hits)
    };
    for (path, says) in most(all, trouble, |one| one.1.used_bytes) {
        let subject = Subject::new(SubjectKind::Cgroup, text::escape(path));
        out.event(seen.at, &subject, &MEMORY_CGROUP, says);
    }
}

fn tell_processes(host: &Host, out: &mut Sink, before: &Seen, seen: &Seen) {
    let within_ns = ns(seen.at.since(before.at));
    let mut all: Vec<(Id, u64, &Process)> = Vec::new();
    for (id, now) in &seen.processes {
        // One that started in between has had all its faults since.
        let old = before.processes.get(id).map_or(0, |old| old.major_faults);
        all.push((*id, now.major_faults.saturating_sub(old), now));
    }
    all.sort_by_key(|(id, _, _)| *id);
    let told = most(all, |one| one.1, |one| one.2.resident_pages);
    for (id, major_faults, process) in told {
        let lineage = process.cgroup.as_deref().map(Lineage::of);
        let lineage = lineage.unwrap_or_default();
        let says = MemoryTask {
            comm: tasks::comm(host, id.pid),
            cgroup: process.cgroup.as_deref().map(text::escape),
            unit: lineage.unit,
            container: lineage.container,
            major_faults,
            resident_bytes: process.resident_pages.saturating_mul(machine::page_bytes()),
            within_ns,
        };
        let subject = Subject::new(SubjectKind::Process, id.pid.to_string());
        out.event(seen.at, &subject, &MEMORY_TASK, says);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_process_and_none_of_the_kernel() {
        let of = |flags: u32| {
            let rest = "41 0 9 0 1 2 20 0 1 0 900 5000 77 18446744073709551615 1";
            faults(format!("7 (a) b) S 1 1 1 0 -1 {flags} 12 0 {rest}").as_bytes())
        };
        // Fields are those of proc(5): majflt is the 12th, rss the 24th.
        assert_eq!(of(4_194_304), Some((900, 41, 77)));
        assert_eq!(of(2_129_984), None);
        assert_eq!(faults(b"7 (short) S 1"), None);
    }

    #[test]
    fn a_path_and_those_above_it() {
        let all: Vec<&[u8]> = with_parents(b"/a/b/c").collect();
        assert_eq!(all, [&b"/a/b/c"[..], b"/a/b", b"/a"]);
        assert_eq!(with_parents(b"/").count(), 0);
        assert_eq!(with_parents(b"").count(), 0);
    }

    #[test]
    fn those_with_trouble_and_the_largest_are_told() {
        let all: Vec<(u64, u64)> = (0..20).map(|i| (u64::from(i < 3), i)).collect();
        let told = most(all, |one| one.0, |one| one.1);
        assert_eq!(told, [(1, 0), (1, 1), (1, 2), (0, 19), (0, 18)]);
    }
}
