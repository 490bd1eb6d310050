//! Who waited for a core, and how long.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::pressure::{CPU_TASK, CPU_THROTTLED_RATIO, CpuTask};
use sexton_model::fact::runq::{CoreWait, RUNQ_WAIT, RUNQ_WAITING};
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::Subject;

use super::groups::Groups;
use super::inside;
use crate::case::Case;
use crate::evidence::owners::Place;

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

/// A task that runs or waits for this part of the time never sleeps.
pub(super) const NEVER_SLEEPS: f64 = 0.95;

/// In a cgroup that its quota holds back this part of the periods, tasks wait for the quota.
const HELD_BACK: f64 = 0.1;

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
    pub(super) is_own: bool,
    cgroup: Option<String>,
}

impl Waiter {
    pub(super) fn of(says: &CpuTask, process: &Subject) -> Self {
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
    /// Those that are named, most first.
    pub(crate) all: Vec<Waiter>,
    /// All of them by owner; older recordings do not tell.
    groups: Option<Groups>,
    /// The time over which those that are named were seen.
    pub(super) seconds_of_named: f64,
}

impl Waiters {
    /// Those whose waiting counts.
    pub(crate) fn of(case: &Case<'_>, within: &[(Moment, Moment)]) -> Self {
        let mut seen = Self::seen(case, within);
        let held_back = held_back(case);
        seen.all.retain(|waiter| waiter.counts(&held_back));
        seen.groups = Groups::of(case, within, &held_back);
        seen
    }

    /// All that were seen.
    pub(super) fn seen(case: &Case<'_>, within: &[(Moment, Moment)]) -> Self {
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
            groups: None,
            seconds_of_named: lengths.values().sum(),
        }
    }

    /// Over how many seconds it was seen who waits.
    pub(crate) fn seconds(&self) -> f64 {
        self.groups
            .as_ref()
            .map_or(self.seconds_of_named, |groups| groups.seconds)
    }

    /// What one that is named did of a second, of what is given in seconds of all that were seen.
    pub(crate) fn part(&self, seconds: f64) -> f64 {
        seconds / self.seconds_of_named.max(f64::MIN_POSITIVE)
    }

    /// Processes that a look had no time for.
    pub(crate) fn n_unread(&self) -> u64 {
        self.groups.as_ref().map_or(0, |groups| groups.n_unread)
    }

    /// How many tasks of each owner waited at any time, on average.
    pub(crate) fn by_owner(&self) -> BTreeMap<&Subject, f64> {
        let mut waiting: BTreeMap<&Subject, f64> = BTreeMap::new();
        match &self.groups {
            Some(groups) => groups.all.iter().for_each(|group| {
                *waiting.entry(&group.owner).or_default() += groups.mean(group.waited);
            }),
            None => self.all.iter().for_each(|waiter| {
                *waiting.entry(&waiter.owner).or_default() += self.part(waiter.waited);
            }),
        }
        waiting
    }

    /// Tasks of these that never slept while it was seen who waits.
    pub(crate) fn n_endless(&self, is_counted: impl Fn(&Subject, &str) -> bool) -> usize {
        if let Some(groups) = &self.groups {
            return groups.n_endless(is_counted);
        }
        let least = NEVER_SLEEPS * self.seconds_of_named;
        let is_endless = |waiter: &&Waiter| waiter.ran + waiter.waited >= least;
        let counted = self.all.iter();
        let counted = counted.filter(|waiter| is_counted(&waiter.owner, &waiter.comm));
        match least > 0.0 {
            true => counted.filter(is_endless).count(),
            false => 0,
        }
    }

    /// How many tasks of these waited at any time, on average. Owners of whose tasks fewer waited
    /// than `least` do not count: many that hardly wait are not one that suffers.
    pub(crate) fn mean(&self, least: f64, is_counted: impl Fn(&Subject, &str) -> bool) -> f64 {
        if let Some(groups) = &self.groups {
            return groups.waiting(least, is_counted);
        }
        let counted = self.all.iter();
        let counted = counted.filter(|waiter| is_counted(&waiter.owner, &waiter.comm));
        let waited = counted.map(|waiter| waiter.waited);
        // The sum of nothing is -0.
        self.part(waited.sum::<f64>() + 0.0)
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

/// Whether of waits for a core only means are known, in which a wait of seconds does not show.
pub(crate) fn are_means(case: &Case<'_>) -> bool {
    let is_one_by_one = [&RUNQ_WAIT.fact, &RUNQ_WAITING.fact]
        .into_iter()
        .any(|fact| !case.of(fact).is_empty());
    let mut steps = case.events(&SEXTON_STEP_DOWN);
    !is_one_by_one && steps.any(|step| *step.subject.name == *"runq")
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

    #[test]
    fn paths_are_below_or_not() {
        assert!(is_below("/a/b", &["/a"]));
        assert!(is_below("/a", &["/x", "/a"]));
        assert!(!is_below("/ab", &["/a"]));
    }
}
