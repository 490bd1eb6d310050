//! Who had a core in the kernel while it was lost, by samples of stacks.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::stack::{PROCESS_ON_CORE, ProcessOnCore};
use sexton_model::finding::Evidence;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use super::Stretch;
use crate::case::Case;
use crate::evidence::kernel_walks;
use crate::evidence::owners::Place;
use crate::evidence::span::earlier;
use crate::words::figures::percent;

/// One with less of the core's kernel time is not named.
const LEAST: f64 = 0.1;

/// One that had this part of the lost time really had the core; less is a turn among others.
const MOST: f64 = 0.5;

/// A process that had much of the core's kernel time.
#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) process: Subject,
    pub(super) comm: String,
    /// The unit, container or cgroup it belongs to; else its name.
    pub(super) owner: Subject,
    /// Part of the core that it had in the kernel, over the interval that was summed up.
    pub(super) ratio: f64,
    /// What that is of the lost time in the interval, at most.
    part: f64,
    place: Option<String>,
}

impl User {
    /// Whether it really had the core, and not only its turn.
    pub(super) fn had_it(&self) -> bool {
        self.part >= MOST
    }

    /// `leaker (pid 77), mostly in cgroup_mkdir`.
    pub(super) fn words(&self) -> String {
        let place = match &self.place {
            Some(function) => format!(", mostly in {function}"),
            None => String::new(),
        };
        format!("{} (pid {}){place}", self.comm, self.process.name)
    }

    pub(super) fn evidence(&self) -> Evidence {
        let place = match &self.place {
            Some(function) => format!(", most often in {function}"),
            None => String::new(),
        };
        let text = format!(
            "{} (pid {}) had {} of the core in the kernel{place}",
            self.comm,
            self.process.name,
            percent(self.ratio)
        );
        Evidence::speaks_for("stacks", text).value(self.ratio)
    }
}

/// Who had most of the core's kernel time while it was lost, most first.
pub(super) fn users(case: &Case<'_>, core: &Subject, long: &[&Stretch]) -> Vec<User> {
    let mut users: BTreeMap<&Subject, User> = BTreeMap::new();
    for event in case.events(&PROCESS_ON_CORE) {
        let Some(user) = user(event, core, long) else {
            continue;
        };
        match users.get(event.subject) {
            Some(known) if known.part >= user.part => {}
            _ => drop(users.insert(event.subject, user)),
        }
    }
    let mut users: Vec<User> = users
        .into_values()
        .filter(|user| user.ratio >= LEAST)
        .collect();
    users.sort_by(|a, b| {
        let key = |user: &User| (user.part, user.ratio);
        let (a_key, b_key) = (key(a), key(b));
        b_key
            .0
            .total_cmp(&a_key.0)
            .then_with(|| b_key.1.total_cmp(&a_key.1))
            .then_with(|| a.process.cmp(&b.process))
    });
    users
}

fn user(event: Event<'_, ProcessOnCore>, core: &Subject, long: &[&Stretch]) -> Option<User> {
    let says = event.says;
    if says.own == Some(true) {
        return None;
    }
    let ratio = ratio_on(says, core)?;
    let lost = lost_in(event, long)?;
    let interval = says.interval_ns.map(Duration::from_nanos);
    let had = interval.map_or(ratio, |interval| {
        ratio * interval.as_secs_f64() / lost.as_secs_f64().max(f64::MIN_POSITIVE)
    });
    let comm = says.comm.as_deref().unwrap_or("a process");
    let place = Place {
        container: None,
        unit: says.unit.as_deref(),
        cgroup: says.cgroup.as_deref().filter(|path| path.starts_with('/')),
        comm,
    };
    Some(User {
        process: Subject::new(SubjectKind::Process, event.subject.name.clone()),
        owner: place.owner(),
        comm: comm.to_owned(),
        ratio,
        part: had.min(1.0),
        place: kernel_walks::telling(&says.hot_stack),
    })
}

/// What it had of that core. Older recordings tell only the core where it had most.
fn ratio_on(says: &ProcessOnCore, core: &Subject) -> Option<f64> {
    let mut cores = says.cores.iter();
    if let Some(share) = cores.find(|share| Subject::cpu(share.cpu) == *core) {
        return Some(share.kernel_ratio);
    }
    let is_worst = says.cpu.map(Subject::cpu).as_ref() == Some(core);
    says.kernel_ratio.filter(|_| is_worst)
}

/// How much of the interval that an event sums up was lost; `None` when none was.
fn lost_in(event: Event<'_, ProcessOnCore>, long: &[&Stretch]) -> Option<Duration> {
    // Recordings that do not tell the length have intervals of ten seconds.
    let interval = Duration::from_nanos(event.says.interval_ns.unwrap_or(10_000_000_000));
    let from = earlier(event.at, interval);
    let parts = long
        .iter()
        .map(|stretch| event.at.min(stretch.to).since(from.max(stretch.from)));
    let lost: Duration = parts.sum();
    (!lost.is_zero()).then_some(lost)
}
