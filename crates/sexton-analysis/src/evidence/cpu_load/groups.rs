//! What all tasks of each owner ran and waited, where that was recorded.

use std::collections::BTreeMap;

use sexton_model::fact::pressure::{CPU_OWNER, CpuOwner};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use super::inside;
use super::waits::{NEVER_SLEEPS, is_held_back, is_of_kernel};
use crate::case::Case;
use crate::evidence::owners::Place;

/// All owners within some stretches.
#[derive(Debug)]
pub(super) struct Groups {
    /// Those whose waiting counts.
    pub(super) all: Vec<Group>,
    pub(super) seconds: f64,
    pub(super) n_unread: u64,
}

/// The tasks of one owner together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) owner: Subject,
    comm: String,
    /// Seconds of all its tasks.
    pub(super) waited: f64,
    pub(super) ran: f64,
    /// Tasks that never slept, up to the last look within the stretches.
    n_endless: u64,
    /// How many small owners these are.
    n_owners: u64,
    pub(super) is_own: bool,
}

impl Groups {
    /// Those whose waiting counts; `None` where nothing was recorded of it.
    pub(super) fn of(
        case: &Case<'_>,
        within: &[(Moment, Moment)],
        held_back: &[&str],
    ) -> Option<Self> {
        Self::seen(case, within, |says| counts(says, held_back))
    }

    /// All that were seen, as far as they are counted.
    pub(super) fn seen(
        case: &Case<'_>,
        within: &[(Moment, Moment)],
        is_counted: impl Fn(&CpuOwner) -> bool,
    ) -> Option<Self> {
        let mut lengths: BTreeMap<Moment, f64> = BTreeMap::new();
        let mut n_unread = 0;
        for event in case.events(&CPU_OWNER) {
            let part = inside(event.at, event.says.interval_ns, within);
            if part > 0.0 {
                lengths.insert(event.at, part);
                n_unread = n_unread.max(event.says.n_unread.unwrap_or(0));
            }
        }
        let (last, _) = lengths.last_key_value()?;
        let seconds: f64 = lengths.values().sum();
        let mut groups: BTreeMap<(Subject, bool), Group> = BTreeMap::new();
        for event in case.events(&CPU_OWNER) {
            let says = event.says;
            let Some(part) = lengths.get(&event.at).filter(|_| is_counted(says)) else {
                continue;
            };
            let share = part / (says.interval_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
            let owner = owner(event.subject, says);
            let is_own = says.own == Some(true);
            let group = groups
                .entry((owner.clone(), is_own))
                .or_insert_with(|| Group {
                    owner,
                    comm: says.comm.clone().unwrap_or_default(),
                    waited: 0.0,
                    ran: 0.0,
                    n_endless: 0,
                    n_owners: 1,
                    is_own,
                });
            group.waited += says.waited_ns as f64 / 1e9 * share;
            group.ran += says.ran_ns as f64 / 1e9 * share;
            group.n_owners = group.n_owners.max(says.n_owners.unwrap_or(1));
            if event.at == *last {
                let least = NEVER_SLEEPS * seconds;
                let long = says.endless.iter();
                let long = long.filter(|some| some.for_ns as f64 / 1e9 >= least);
                group.n_endless += long.map(|some| some.n).sum::<u64>();
            }
        }
        Some(Self {
            all: groups.into_values().collect(),
            seconds,
            n_unread,
        })
    }

    pub(super) fn mean(&self, seconds: f64) -> f64 {
        seconds / self.seconds.max(f64::MIN_POSITIVE)
    }

    pub(super) fn waiting(&self, least: f64, is_counted: impl Fn(&Subject, &str) -> bool) -> f64 {
        let counted = self.all.iter();
        let counted = counted.filter(|group| is_counted(&group.owner, &group.comm));
        let waiting = counted.map(|group| (self.mean(group.waited), group.n_owners.max(1)));
        let much = waiting.filter(|(waiting, n_owners)| *waiting >= least * *n_owners as f64);
        // The sum of nothing is -0.
        much.map(|(waiting, _)| waiting).sum::<f64>() + 0.0
    }

    pub(super) fn n_endless(&self, is_counted: impl Fn(&Subject, &str) -> bool) -> usize {
        let counted = self.all.iter();
        let counted = counted.filter(|group| is_counted(&group.owner, &group.comm));
        let n: u64 = counted.map(|group| group.n_endless).sum();
        usize::try_from(n).unwrap_or(usize::MAX)
    }
}

impl Group {
    pub(super) fn comm(&self) -> &str {
        &self.comm
    }
}

/// As of one process: see `Waiter`.
fn counts(says: &CpuOwner, held_back: &[&str]) -> bool {
    let is_helper = is_of_kernel(says.comm.as_deref().unwrap_or_default());
    let is_held = is_held_back(says.cgroup.as_deref(), held_back);
    says.niced != Some(true) && says.own != Some(true) && !is_helper && !is_held
}

/// Small owners that were summed up are about the node.
fn owner(subject: &Subject, says: &CpuOwner) -> Subject {
    if subject.kind == SubjectKind::Node {
        return subject.clone();
    }
    let place = [&says.container, &says.unit, &says.cgroup];
    Place::told(place, &says.comm).owner()
}
