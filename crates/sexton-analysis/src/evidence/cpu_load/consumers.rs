//! Who had the cores.

use std::collections::{BTreeMap, BTreeSet};

use sexton_model::fact::pressure::CPU_TASK;
use sexton_model::fact::stack::CPU_USE;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use super::groups::Groups;
use super::inside;
use super::waits::{Waiter, Waiters};
use crate::case::Case;
use crate::evidence::makers::MakersByName;
use crate::evidence::owners::Place;

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
    fn new(owner: Subject, is_own: bool) -> Self {
        Self {
            owner,
            cores: 0.0,
            kernel_cores: 0.0,
            comms: Vec::new(),
            processes: BTreeSet::new(),
            is_own,
        }
    }

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
        let (one, names) = sums
            .entry((owner.clone(), is_own))
            .or_insert_with(|| (Consumer::new(owner, is_own), BTreeMap::new()));
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
    let groups = Groups::seen(case, within, |_| true);
    for one in waiters.all {
        let (sum, names) = sums
            .entry(one.owner.clone())
            .or_insert_with(|| (Consumer::new(one.owner, one.is_own), BTreeMap::new()));
        // Few of them are named; all of them are in the sums of owners.
        sum.cores += if groups.is_none() { one.ran } else { 0.0 };
        sum.processes.insert(one.process);
        *names.entry(one.comm).or_default() += one.ran;
    }
    let Some(groups) = groups else {
        return ranked(sums.into_values(), waiters.seconds_of_named);
    };
    // Small owners that were summed up are no one.
    let named = groups.all.iter();
    for group in named.filter(|group| group.owner.kind != SubjectKind::Node) {
        let (sum, names) = sums.entry(group.owner.clone()).or_insert_with(|| {
            let sum = Consumer::new(group.owner.clone(), group.is_own);
            (sum, BTreeMap::new())
        });
        sum.cores += group.ran;
        names.entry(group.comm().to_owned()).or_default();
    }
    ranked(sums.into_values(), groups.seconds)
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
