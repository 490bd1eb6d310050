//! What the processes of each cgroup ran and waited between two looks, and the few processes
//! that are named.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sexton_host::Host;
use sexton_model::fact::pressure::{CPU_OWNER, CPU_TASK, CpuOwner, CpuTask, Endless};
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text;

use super::processes::{Grown, Look, Times};
use crate::effort::Effort;
use crate::lineage::Lineage;
use crate::tasks;

/// Owners that one interval reports, by what they waited and by what they ran; the others are
/// one sum.
const MAX_OWNERS: usize = 24;

/// Processes that are named, of those that ran most and of those that waited most.
const MAX_NAMED: usize = 12;

/// Places that the processes of one owner take while others want them.
const MAX_OF_OWNER: usize = 4;

/// A process that ran and waited for a smaller part of the interval is not named.
const LEAST: f64 = 0.02;

/// One that did less is not asked where it belongs: a thousand of them are a second.
const LEAST_NS: u64 = 1_000_000;

/// Lengths of time without sleep that are reported of an owner; the shortest are rounded down.
const MAX_LENGTHS: usize = 8;

/// What is put down to one owner: tasks that differ in whether waiting means that they suffer are
/// kept apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    cgroup: Option<String>,
    /// The name, where the cgroup tells nothing.
    name: Option<String>,
    is_niced: bool,
    is_of_kernel: bool,
    is_own: bool,
}

#[derive(Debug, Default)]
struct Sum {
    n_processes: u64,
    n_owners: u64,
    ran_ns: u64,
    waited_ns: u64,
    endless: Vec<Duration>,
    /// The process that did most.
    first: (u64, u32),
}

impl Sum {
    fn add(&mut self, grown: &Grown) {
        self.n_processes += 1;
        self.ran_ns = self.ran_ns.saturating_add(grown.times.ran_ns);
        self.waited_ns = self.waited_ns.saturating_add(grown.times.waited_ns);
        self.endless.extend(&grown.endless);
        self.first = self.first.max((grown.times.sum_ns(), grown.pid));
    }
}

/// Tells what was done since the look before.
pub(super) fn tell(host: &Host, look: &Look, interval: Duration, out: &mut Sink) {
    let effort = Effort::begin();
    let mut grown: Vec<&Grown> = look
        .grown
        .iter()
        .filter(|one| one.times.sum_ns() >= LEAST_NS)
        .collect();
    // If there is no time for all, those that did least are left together.
    grown.sort_by_key(|one| (Reverse(one.times.sum_ns()), one.pid));
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut owned: Vec<(&Grown, Key)> = Vec::new();
    for one in grown {
        let key = match effort.has_taken(1.0) {
            true => Key::default(),
            false => key(host, one),
        };
        sums.entry(key.clone()).or_default().add(one);
        owned.push((one, key));
    }
    let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    let n_unread = look.n_left_out.saturating_add(look.n_threads_left_out);
    for (key, sum) in told(sums) {
        let mut says = event(host, &key, sum);
        says.interval_ns = interval_ns;
        says.n_unread = Some(n_unread).filter(|n| *n > 0);
        out.event(out.now(), &subject(&key), &CPU_OWNER, says);
    }
    let least = (interval.as_nanos() as f64 * LEAST) as u64;
    owned.retain(|(one, _)| one.times.sum_ns() >= least);
    for (one, key) in named(owned) {
        tell_process(host, one, &key, interval_ns, out);
    }
}

/// To whom a process is put down. The kernel's threads have names with a number behind a slash.
fn key(host: &Host, grown: &Grown) -> Key {
    let is_own = grown.pid == std::process::id();
    let key = Key {
        is_niced: grown.nice > 0,
        is_of_kernel: grown.is_of_kernel,
        is_own,
        ..Key::default()
    };
    if !grown.is_of_kernel {
        let cgroup = tasks::cgroup(host, grown.pid);
        if let Some(cgroup) = cgroup.filter(|path| path != "/") {
            let cgroup = Some(cgroup);
            return Key { cgroup, ..key };
        }
    }
    let name = tasks::comm(host, grown.pid).map(|name| match name.split_once('/') {
        Some((kind, _)) if grown.is_of_kernel => format!("{kind}/"),
        _ => name,
    });
    Key { name, ..key }
}

/// Those that waited most and those that ran most; the others together, as far as their waiting
/// means that they suffer.
fn told(sums: BTreeMap<Key, Sum>) -> Vec<(Key, Sum)> {
    let mut all: Vec<(Key, Sum)> = sums.into_iter().collect();
    all.sort_by(|a, b| b.1.ran_ns.cmp(&a.1.ran_ns).then_with(|| a.0.cmp(&b.0)));
    let mut rest = all.split_off(all.len().min(MAX_OWNERS));
    rest.sort_by(|a, b| {
        b.1.waited_ns
            .cmp(&a.1.waited_ns)
            .then_with(|| a.0.cmp(&b.0))
    });
    let others = rest.split_off(rest.len().min(MAX_OWNERS));
    all.extend(rest);
    let others = others
        .into_iter()
        .filter(|(key, _)| !key.is_niced && !key.is_of_kernel && !key.is_own);
    let mut together = Sum::default();
    for (_, sum) in others {
        together.n_owners += 1;
        together.n_processes += sum.n_processes;
        together.ran_ns = together.ran_ns.saturating_add(sum.ran_ns);
        together.waited_ns = together.waited_ns.saturating_add(sum.waited_ns);
        together.first = together.first.max(sum.first);
    }
    if together.n_owners > 0 {
        all.push((Key::default(), together));
    }
    all
}

fn event(host: &Host, key: &Key, mut sum: Sum) -> CpuOwner {
    let lineage = lineage(key);
    let is_told = |flag: bool| flag.then_some(true);
    CpuOwner {
        comm: key.name.clone().or_else(|| tasks::comm(host, sum.first.1)),
        cgroup: key.cgroup.clone(),
        unit: lineage.unit,
        container: lineage.container,
        niced: is_told(key.is_niced),
        of_kernel: is_told(key.is_of_kernel),
        own: is_told(key.is_own),
        n_owners: Some(sum.n_owners).filter(|n| *n > 0),
        n_processes: sum.n_processes,
        ran_ns: sum.ran_ns,
        waited_ns: sum.waited_ns,
        endless: lengths(&mut sum.endless),
        ..CpuOwner::default()
    }
}

fn lineage(key: &Key) -> Lineage {
    let path = key.cgroup.as_deref().map(text::unescape);
    path.map(|path| Lineage::of(&path)).unwrap_or_default()
}

/// How many have not slept for how long, longest first.
fn lengths(endless: &mut [Duration]) -> Vec<Endless> {
    endless.sort_unstable_by_key(|length| Reverse(*length));
    let mut all: Vec<Endless> = Vec::new();
    for length in endless {
        let for_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let is_full = all.len() >= MAX_LENGTHS;
        match all.last_mut() {
            Some(last) if last.for_ns == for_ns || is_full => {
                last.n += 1;
                last.for_ns = for_ns;
            }
            _ => all.push(Endless { n: 1, for_ns }),
        }
    }
    all
}

fn subject(key: &Key) -> Subject {
    match (&key.cgroup, &key.name) {
        (Some(cgroup), _) => Subject::new(SubjectKind::Cgroup, cgroup.as_str()),
        (None, Some(name)) => Subject::new(SubjectKind::Task, name.as_str()),
        (None, None) => Subject::node(),
    }
}

/// Processes that waited most and those that ran most. One owner has all places only if no other
/// wants them: who suffers is to be named beside who makes it.
fn named(owned: Vec<(&Grown, Key)>) -> Vec<(&Grown, Key)> {
    let by = |figure: fn(&Times) -> u64| {
        let mut sorted: Vec<&(&Grown, Key)> = owned.iter().collect();
        sorted.sort_by_key(|(one, _)| (Reverse(figure(&one.times)), one.pid));
        let mut of_owner: BTreeMap<&Key, usize> = BTreeMap::new();
        let (first, second): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|(_, key)| {
            let n = of_owner.entry(key).or_default();
            *n += 1;
            *n <= MAX_OF_OWNER
        });
        let pids = first.into_iter().chain(second).map(|(one, _)| one.pid);
        pids.take(MAX_NAMED).collect::<Vec<u32>>()
    };
    let mut pids: HashSet<u32> = by(|times| times.waited_ns).into_iter().collect();
    pids.extend(by(|times| times.ran_ns));
    owned
        .into_iter()
        .filter(|(one, _)| pids.contains(&one.pid))
        .collect()
}

fn tell_process(host: &Host, one: &Grown, key: &Key, interval_ns: u64, out: &mut Sink) {
    let lineage = lineage(key);
    let says = CpuTask {
        comm: tasks::comm(host, one.pid),
        cgroup: key.cgroup.clone(),
        unit: lineage.unit,
        container: lineage.container,
        nice: Some(one.nice),
        ran_ns: one.times.ran_ns,
        waited_ns: one.times.waited_ns,
        interval_ns,
        own: key.is_own.then_some(true),
    };
    let subject = Subject::new(SubjectKind::Process, one.pid.to_string());
    out.event(out.now(), &subject, &CPU_TASK, says);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(pid: u32, ran_ns: u64, waited_ns: u64) -> Grown {
        Grown {
            pid,
            times: Times { ran_ns, waited_ns },
            ..Grown::default()
        }
    }

    fn owner(name: &str) -> Key {
        Key {
            cgroup: Some(format!("/{name}")),
            ..Key::default()
        }
    }

    /// Forty-eight busy loops, and one that waits for them less than each of them does.
    #[test]
    fn who_suffers_is_named_beside_many_that_make_it() {
        let all: Vec<Grown> = (1..=48).map(|pid| grown(pid, 1_700, 3_300)).collect();
        let victim = grown(99, 300, 2_000);
        let mut owned: Vec<(&Grown, Key)> = all.iter().map(|one| (one, owner("hog"))).collect();
        owned.push((&victim, owner("api")));
        let named = named(owned);
        assert!(named.iter().any(|(one, _)| one.pid == 99), "{named:?}");
        // No place is left empty.
        assert_eq!(named.len(), MAX_NAMED);
    }

    #[test]
    fn what_finds_no_place_is_one_sum() {
        let mut sums = BTreeMap::new();
        for n in 0..60 {
            let mut sum = Sum::default();
            sum.add(&grown(n, 1_000 - u64::from(n), u64::from(n)));
            sums.insert(owner(&n.to_string()), sum);
        }
        let niced = Key {
            is_niced: true,
            ..owner("niced")
        };
        sums.insert(niced, Sum::default());
        let told = told(sums);
        assert_eq!(told.len(), 2 * MAX_OWNERS + 1);
        // Who ran most, who waited most.
        for n in ["0", "59"] {
            assert!(told.iter().any(|(key, _)| *key == owner(n)), "{n}");
        }
        let (rest, sum) = told.last().expect("the others");
        assert_eq!((rest, sum.n_owners), (&Key::default(), 12));
    }

    #[test]
    fn lengths_are_counted_and_never_made_longer() {
        let seconds = |all: &[u64]| -> Vec<Duration> {
            all.iter().map(|n| Duration::from_secs(*n)).collect()
        };
        let told = lengths(&mut seconds(&[5, 10, 5, 10, 5]));
        let of = |all: &[Endless]| -> Vec<(u64, u64)> {
            all.iter()
                .map(|one| (one.n, one.for_ns / 1_000_000_000))
                .collect()
        };
        assert_eq!(of(&told), [(2, 10), (3, 5)]);
        let many: Vec<u64> = (1..=20).collect();
        let told = of(&lengths(&mut seconds(&many)));
        assert_eq!(told.len(), MAX_LENGTHS);
        assert_eq!(told.last(), Some(&(13, 1)));
    }
}
