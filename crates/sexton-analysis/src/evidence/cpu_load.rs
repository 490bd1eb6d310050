//! How full the cores were, who had them, and who waited for one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::Fact;
use sexton_model::fact::core::{
    CORE_GUEST_RATIO, CORE_IRQ_RATIO, CORE_SOFTIRQ_RATIO, CORE_SYSTEM_RATIO, CORE_USER_RATIO,
};
use sexton_model::fact::pressure::{CPU_TASK, CPU_THROTTLED_RATIO};
use sexton_model::fact::runq::{CoreWait, RUNQ_WAIT, RUNQ_WAITING};
use sexton_model::fact::stack::CPU_USE;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::makers::MakersByName;
use crate::evidence::owners::Place;
use crate::evidence::span;

/// What programs of ordinary priority and the kernel have. Niced work is left out: it gives its
/// core to any other task at once, so a core that runs it is free for others.
static USED: [&Fact; 5] = [
    &CORE_USER_RATIO,
    &CORE_SYSTEM_RATIO,
    &CORE_IRQ_RATIO,
    &CORE_SOFTIRQ_RATIO,
    &CORE_GUEST_RATIO,
];

/// Threads of the kernel that work for programs: that they wait is part of the programs' work.
const HELPERS: [&str; 9] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "rcu",
    "kswapd",
    "kcompactd",
    "jbd2/",
    "cpuhp/",
    "napi/",
];

/// In a cgroup that its quota holds back this part of the periods, tasks wait for the quota.
const HELD_BACK: f64 = 0.1;

/// A second of which so little was sampled says nothing.
const LEAST_SEEN: f64 = 0.5;

/// The part of all cores that was used in each second.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) n_cores: usize,
    seconds: BTreeMap<u64, f64>,
}

impl Use {
    pub(crate) fn of(case: &Case<'_>) -> Self {
        let mut cores: BTreeMap<&Subject, BTreeMap<Moment, f64>> = BTreeMap::new();
        for fact in USED {
            for record in case.of(fact) {
                let of_core = cores.entry(&record.subject).or_default();
                *of_core.entry(record.at).or_default() += record.value().unwrap_or(0.0);
            }
        }
        // Of each second: core time that was used, and core time that was seen.
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for samples in cores.values() {
            let all: Vec<(Moment, f64)> = samples.iter().map(|(at, used)| (*at, *used)).collect();
            for pair in all.windows(2) {
                spread(&mut sums, pair[0].0, pair[1]);
            }
        }
        let least = LEAST_SEEN * cores.len() as f64;
        let seconds = sums.into_iter().filter(|(_, (_, seen))| *seen >= least);
        Self {
            n_cores: cores.len(),
            seconds: seconds
                .map(|(second, (used, seen))| (second, used / seen))
                .collect(),
        }
    }

    /// Whether anything is known.
    pub(crate) fn is_known(&self) -> bool {
        !self.seconds.is_empty()
    }

    /// The stretches in which at least this part was used, from their first to their last such
    /// second; one second with less in between does not end them.
    pub(crate) fn stretches(&self, part: f64) -> Vec<(Moment, Moment)> {
        let at = |second: u64| Moment::from_ns(second * 1_000_000_000);
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for second in self.full(part) {
            match stretches.last_mut() {
                Some((_, end)) if second <= *end + 1 => *end = second + 1,
                _ => stretches.push((second, second + 1)),
            }
        }
        stretches
            .into_iter()
            .map(|(from, to)| (at(from), at(to)))
            .collect()
    }

    fn full(&self, part: f64) -> impl Iterator<Item = u64> {
        let full = self.seconds.iter().filter(move |(_, used)| **used >= part);
        full.map(|(second, _)| *second)
    }

    /// The mean of what was used within these stretches.
    pub(crate) fn mean(&self, within: &[(Moment, Moment)]) -> f64 {
        let is_in = |second: u64| {
            let at = Moment::from_ns(second * 1_000_000_000);
            within.iter().any(|(from, to)| *from <= at && at < *to)
        };
        let values: Vec<f64> = self
            .seconds
            .iter()
            .filter(|(second, _)| is_in(**second))
            .map(|(_, used)| *used)
            .collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }
}

/// Adds what a sample says of the time since the one before to the seconds it covers.
fn spread(sums: &mut BTreeMap<u64, (f64, f64)>, from: Moment, (to, used): (Moment, f64)) {
    const SECOND: u64 = 1_000_000_000;
    let (mut at, end) = (from.as_ns(), to.as_ns());
    if end.saturating_sub(at) > 5 * SECOND {
        return;
    }
    while at < end {
        let next = ((at / SECOND + 1) * SECOND).min(end);
        let seconds = (next - at) as f64 / 1e9;
        let sum = sums.entry(at / SECOND).or_default();
        sum.0 += used * seconds;
        sum.1 += seconds;
        at = next;
    }
}

/// One that had the cores: a container, unit, cgroup or name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Consumer {
    pub(crate) owner: Subject,
    /// Core time it had, in cores.
    pub(crate) cores: f64,
    /// Of this, in the kernel.
    pub(crate) kernel_cores: f64,
    /// Names of its processes, those that had most first.
    pub(crate) comms: Vec<String>,
    /// Its processes, as far as they are known one by one.
    pub(crate) processes: BTreeSet<Subject>,
    pub(crate) is_own: bool,
}

impl Consumer {
    /// Whether processes of this name are among what it has run.
    pub(crate) fn has_name(&self, comm: &str) -> bool {
        self.comms.iter().any(|name| name == comm)
    }
}

/// Who had the cores within these stretches, most first.
pub(crate) fn consumers(case: &Case<'_>, within: &[(Moment, Moment)]) -> Vec<Consumer> {
    let mut sums: BTreeMap<(Subject, bool), (Consumer, BTreeMap<String, f64>)> = BTreeMap::new();
    let mut lengths: BTreeMap<Moment, f64> = BTreeMap::new();
    let (places, makers) = (places_by_name(case), MakersByName::of(case));
    for event in case.events(&CPU_USE) {
        let says = event.says;
        let part = inside(event.at, says.interval_ns, within);
        if part <= 0.0 {
            continue;
        }
        lengths.insert(event.at, part);
        let place = Place {
            container: says.container.as_deref(),
            unit: says.unit.as_deref(),
            cgroup: says.cgroup.as_deref(),
            comm: &says.comm,
        };
        // In a namespace of PIDs stacks tell no cgroup; processes of that name may.
        let owner = match (place.cgroup, places.get(&*says.comm)) {
            (None, Some(Some(owner))) => owner.clone(),
            _ => place.owner(),
        };
        let owner = match owner.kind {
            SubjectKind::Task => makers.owner(&says.comm, place.cgroup).unwrap_or(owner),
            _ => owner,
        };
        let is_own = says.own == Some(true);
        let (one, names) = sums.entry((owner.clone(), is_own)).or_insert_with(|| {
            let one = Consumer {
                owner,
                cores: 0.0,
                kernel_cores: 0.0,
                comms: Vec::new(),
                processes: BTreeSet::new(),
                is_own,
            };
            (one, BTreeMap::new())
        });
        one.cores += says.cores * part;
        one.kernel_cores += says.kernel_cores * part;
        *names.entry(says.comm.clone()).or_default() += says.cores * part;
        if event.subject.kind == SubjectKind::Process {
            one.processes.insert(event.subject.clone());
        }
    }
    match sums.is_empty() {
        true => runners(case, within),
        false => ranked(sums.into_values(), lengths.values().sum()),
    }
}

/// The same where no stacks were sampled, by what processes say of themselves: what came and went
/// within the stretches is missing.
fn runners(case: &Case<'_>, within: &[(Moment, Moment)]) -> Vec<Consumer> {
    let mut sums: BTreeMap<Subject, (Consumer, BTreeMap<String, f64>)> = BTreeMap::new();
    let waiters = Waiters::seen(case, within);
    for one in waiters.all {
        let (sum, names) = sums.entry(one.owner.clone()).or_insert_with(|| {
            let sum = Consumer {
                owner: one.owner,
                cores: 0.0,
                kernel_cores: 0.0,
                comms: Vec::new(),
                processes: BTreeSet::new(),
                is_own: one.is_own,
            };
            (sum, BTreeMap::new())
        });
        sum.cores += one.ran;
        sum.processes.insert(one.process);
        *names.entry(one.comm).or_default() += one.ran;
    }
    ranked(sums.into_values(), waiters.seconds)
}

/// Means over a number of seconds, those that had most first.
fn ranked(
    sums: impl Iterator<Item = (Consumer, BTreeMap<String, f64>)>,
    seconds: f64,
) -> Vec<Consumer> {
    let mut all: Vec<Consumer> = sums
        .map(|(one, names)| {
            let mut names: Vec<(String, f64)> = names.into_iter().collect();
            names.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            Consumer {
                cores: one.cores / seconds,
                kernel_cores: one.kernel_cores / seconds,
                comms: names.into_iter().map(|(name, _)| name).collect(),
                ..one
            }
        })
        .collect();
    all.sort_by(|a, b| {
        b.cores
            .total_cmp(&a.cores)
            .then_with(|| a.owner.cmp(&b.owner))
    });
    all
}

/// The owner of all processes of a name that were seen waiting or running; `None` for several.
fn places_by_name<'a>(case: &Case<'a>) -> BTreeMap<&'a str, Option<Subject>> {
    let mut places: BTreeMap<&str, Option<Subject>> = BTreeMap::new();
    for event in case.events(&CPU_TASK) {
        let Some(comm) = event.says.comm.as_deref() else {
            continue;
        };
        let owner = Some(Waiter::of(event.says, event.subject).owner);
        let known = places.entry(comm).or_insert_with(|| owner.clone());
        if *known != owner {
            *known = None;
        }
    }
    places
}

/// Seconds of an interval that ends at a moment which lie within these stretches.
fn inside(at: Moment, interval_ns: u64, within: &[(Moment, Moment)]) -> f64 {
    let from = span::earlier(at, Duration::from_nanos(interval_ns));
    let parts = within
        .iter()
        .map(|span| at.min(span.1).since(from.max(span.0)).as_secs_f64());
    parts.sum()
}

/// A process that waited for a core.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiter {
    pub(crate) process: Subject,
    pub(crate) comm: String,
    pub(crate) owner: Subject,
    /// Seconds that it could have run and waited.
    pub(crate) waited: f64,
    pub(crate) ran: f64,
    is_niced: bool,
    is_own: bool,
    cgroup: Option<String>,
}

impl Waiter {
    fn of(says: &sexton_model::fact::pressure::CpuTask, process: &Subject) -> Self {
        let comm = says.comm.clone().unwrap_or_else(|| "a process".into());
        let place = Place {
            container: says.container.as_deref(),
            unit: says.unit.as_deref(),
            cgroup: says.cgroup.as_deref(),
            comm: &comm,
        };
        Self {
            process: process.clone(),
            owner: place.owner(),
            waited: 0.0,
            ran: 0.0,
            is_niced: says.nice.is_some_and(|nice| nice > 0),
            is_own: says.own == Some(true),
            cgroup: says.cgroup.clone(),
            comm,
        }
    }

    /// Whether that it waits tells that it suffers: not of batch work, of sexton itself, of what
    /// a quota holds back, nor of threads of the kernel that work for others.
    fn counts(&self, held_back: &[&str]) -> bool {
        let is_held = is_held_back(self.cgroup.as_deref(), held_back);
        !self.is_niced && !self.is_own && !is_of_kernel(&self.comm) && !is_held
    }
}

/// Whether a task of this name is a thread of the kernel that works for others.
pub(crate) fn is_of_kernel(comm: &str) -> bool {
    HELPERS.iter().any(|name| comm.starts_with(name))
}

/// Whether a task in this cgroup waits for its quota.
pub(crate) fn is_held_back(cgroup: Option<&str>, held_back: &[&str]) -> bool {
    cgroup.is_some_and(|path| is_below(path, held_back))
}

fn is_below(path: &str, above: &[&str]) -> bool {
    above.iter().any(|above| {
        let below = path.strip_prefix(above);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Who waited within these stretches, and over how many seconds that was seen.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Most first.
    pub(crate) all: Vec<Waiter>,
    pub(crate) seconds: f64,
}

impl Waiters {
    /// Those whose waiting counts.
    pub(crate) fn of(case: &Case<'_>, within: &[(Moment, Moment)]) -> Self {
        let mut seen = Self::seen(case, within);
        let held_back = held_back(case);
        seen.all.retain(|waiter| waiter.counts(&held_back));
        seen
    }

    /// All that were seen.
    fn seen(case: &Case<'_>, within: &[(Moment, Moment)]) -> Self {
        let mut waiters: BTreeMap<&Subject, Waiter> = BTreeMap::new();
        let mut lengths: BTreeMap<Moment, f64> = BTreeMap::new();
        for event in case.events(&CPU_TASK) {
            let says = event.says;
            let part = inside(event.at, says.interval_ns, within);
            let share = part / (says.interval_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
            if part <= 0.0 {
                continue;
            }
            lengths.insert(event.at, part);
            let waiter = waiters
                .entry(event.subject)
                .or_insert_with(|| Waiter::of(says, event.subject));
            waiter.waited += says.waited_ns as f64 / 1e9 * share;
            waiter.ran += says.ran_ns as f64 / 1e9 * share;
        }
        let mut all: Vec<Waiter> = waiters.into_values().collect();
        all.sort_by(|a, b| {
            b.waited
                .total_cmp(&a.waited)
                .then_with(|| a.process.cmp(&b.process))
        });
        Self {
            all,
            seconds: lengths.values().sum(),
        }
    }

    /// How many of these waited at any time, on average.
    pub(crate) fn mean(&self, is_counted: impl Fn(&Waiter) -> bool) -> f64 {
        let waited = self
            .all
            .iter()
            .filter(|one| is_counted(one))
            .map(|one| one.waited);
        // The sum of nothing is -0.
        (waited.sum::<f64>() + 0.0) / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// Cgroups whose tasks wait for their quota.
pub(crate) fn held_back<'a>(case: &Case<'a>) -> Vec<&'a str> {
    let cgroups = case.by_subject(&CPU_THROTTLED_RATIO).into_iter();
    let held = cgroups.filter(|(_, records)| {
        let sum: f64 = records.iter().filter_map(|record| record.value()).sum();
        sum / records.len().max(1) as f64 >= HELD_BACK
    });
    held.map(|(cgroup, _)| &*cgroup.name).collect()
}

/// One wait for a core that was long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LongWait {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    /// Where it belongs, if that could be asked.
    pub(crate) owner: Option<Subject>,
    pub(crate) waited: Duration,
}

/// The long waits within these stretches of those whose waiting counts, longest first.
pub(crate) fn long_waits(case: &Case<'_>, within: &[(Moment, Moment)]) -> Vec<LongWait> {
    let held_back = held_back(case);
    let events = case.events(&RUNQ_WAIT).chain(case.events(&RUNQ_WAITING));
    let is_inside = |event: &Event<'_, CoreWait>| {
        within
            .iter()
            .any(|(from, to)| *from <= event.at && event.at <= *to)
    };
    let counts = |says: &CoreWait| {
        let comm = says.comm.as_deref().unwrap_or_default();
        let is_held = is_held_back(says.cgroup.as_deref(), &held_back);
        !is_held && !is_of_kernel(comm) && says.nice.is_none_or(|nice| nice <= 0)
    };
    let mut waits: Vec<LongWait> = events
        .filter(is_inside)
        .filter(|event| counts(event.says))
        .map(|event| {
            let comm = event.says.comm.clone().unwrap_or_else(|| "a task".into());
            let owner = event.says.cgroup.as_deref().map(|cgroup| {
                let place = Place {
                    cgroup: Some(cgroup),
                    comm: &comm,
                    ..Place::default()
                };
                place.owner()
            });
            LongWait {
                pid: event.says.pid,
                owner,
                waited: Duration::from_nanos(event.says.waited_ns),
                comm,
            }
        })
        .collect();
    waits.sort_by(|a, b| b.waited.cmp(&a.waited).then_with(|| a.pid.cmp(&b.pid)));
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::testing::story::{Story, at};
    use sexton_model::timeline::Records;

    #[test]
    fn stretches_are_of_all_cores_together() {
        let story = Story::default()
            .core(0, (10.0, 30.0), (0.1, 0.88))
            .core(1, (10.0, 15.9), (0.1, 0.1))
            .core(1, (16.0, 30.0), (0.1, 0.88));
        let records = Records::new(story.records().to_vec());
        let policy = Policy::default();
        let used = Use::of(&Case::new(&records, &policy));
        assert_eq!(used.n_cores, 2);
        assert!(used.is_known());
        let stretches = used.stretches(0.9);
        assert_eq!(stretches, [(at(16.0), at(30.0))]);
        assert!((used.mean(&stretches) - 0.99).abs() < 0.01);
    }

    #[test]
    fn paths_are_below_or_not() {
        assert!(is_below("/a/b", &["/a"]));
        assert!(is_below("/a", &["/x", "/a"]));
        assert!(!is_below("/ab", &["/a"]));
    }
}
