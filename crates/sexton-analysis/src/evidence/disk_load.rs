//! Times in which a disk was busy without a break, what it did then, and who used it and waited.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::disk::{self as fact, DISK_SEEN, DISK_USER, DISK_WAITERS, DiskUse};
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::span;
use crate::words::unit_name;

/// A disk that is less busy than it should be for up to so long still counts as busy: writes
/// that are gathered in the cache leave in waves.
const PAUSE: Duration = Duration::from_secs(3);

/// A disk that was busy.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    pub(crate) disk: &'a Subject,
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    /// Part of the time in which it had a request.
    pub(crate) busy: f64,
    /// Requests at once, on average.
    pub(crate) queue: f64,
    /// Time of a request, on average.
    pub(crate) latency_ns: f64,
    /// Bytes read and written in a second.
    pub(crate) bytes_per_second: f64,
}

impl Load<'_> {
    pub(crate) fn span(&self) -> (Moment, Moment) {
        (self.from, self.to)
    }

    pub(crate) fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// The longest time in which a disk was at least so busy.
pub(crate) fn longest<'a>(case: &Case<'a>, disk: &'a Subject, least_busy: f64) -> Option<Load<'a>> {
    let samples: Vec<(Moment, f64)> = case.samples(&fact::DISK_BUSY_RATIO, disk).collect();
    let (from, to) = span::longest_above(&samples, least_busy, PAUSE)?;
    let within = [(from, to)];
    let mean = |fact| {
        let samples: Vec<(Moment, f64)> = case.samples(fact, disk).collect();
        span::mean(&samples, &within).unwrap_or(0.0)
    };
    Some(Load {
        disk,
        from,
        to,
        busy: mean(&fact::DISK_BUSY_RATIO),
        queue: mean(&fact::DISK_QUEUE),
        latency_ns: mean(&fact::DISK_LATENCY_NS),
        bytes_per_second: grown(case, &fact::DISK_READ_BYTES, disk, (from, to))
            + grown(case, &fact::DISK_WRITTEN_BYTES, disk, (from, to)),
    })
}

/// The growth of a counter in a second.
fn grown(
    case: &Case<'_>,
    fact: &'static sexton_model::fact::Fact,
    disk: &Subject,
    within: (Moment, Moment),
) -> f64 {
    let samples: Vec<(Moment, f64)> = case.samples(fact, disk).collect();
    span::growth(&samples, within).unwrap_or(0.0)
}

/// The longest time in which a disk had requests and completed none.
pub(crate) fn stall(case: &Case<'_>, disk: &Subject) -> Option<(Moment, Moment)> {
    let in_flight: BTreeMap<Moment, f64> = case.samples(&fact::DISK_IN_FLIGHT, disk).collect();
    let mut longest: Option<(Moment, Moment)> = None;
    let mut from: Option<Moment> = None;
    let mut before: Option<Moment> = None;
    for (at, completed) in case.samples(&fact::DISK_COMPLETED, disk) {
        let hangs = completed == 0.0 && in_flight.get(&at).is_some_and(|n| *n > 0.0);
        from = match (hangs, from) {
            (true, None) => Some(before.unwrap_or(at)),
            (true, known) => known,
            (false, _) => None,
        };
        if let Some(from) = from
            && longest.is_none_or(|(a, b)| at.since(from) > b.since(a))
        {
            longest = Some((from, at));
        }
        before = Some(at);
    }
    longest
}

/// Part of the looks in a span in which a task waited that may have waited for this disk. `None`
/// where nothing was looked at.
pub(crate) fn waits(case: &Case<'_>, disk: &Subject, (from, to): (Moment, Moment)) -> Option<f64> {
    let is_inside = |at: Moment| at >= from && at <= to;
    let node = Subject::node();
    let looks = case.samples(&DISK_WAITERS, &node);
    let n_looks = looks.filter(|(at, _)| is_inside(*at)).count();
    let names = names(case, disk);
    // Which disk a process without open files waits for is not to be seen.
    let is_about = |says: &DiskUse| {
        says.disks.is_empty() || says.disks.iter().any(|disk| names.contains(disk))
    };
    let waiting = case
        .events(&DISK_USER)
        .filter(|event| is_inside(event.at) && event.says.waits && is_about(event.says));
    let waiting: BTreeSet<Moment> = waiting.map(|event| event.at).collect();
    (n_looks > 0).then(|| waiting.len() as f64 / n_looks as f64)
}

/// Who used a disk or waited for it: a container, a service, or processes of one name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Party {
    /// `db.service`, `container 4f2c…`, `dd`.
    pub(crate) name: String,
    pub(crate) unit: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) cgroup: Option<String>,
    /// The process with the most bytes.
    pub(crate) pid: u32,
    pub(crate) comm: String,
    pub(crate) bytes: u64,
    most: u64,
    /// Looks in which it waited.
    pub(crate) n_waits: usize,
}

/// All parties, those with the most bytes first, and the number of looks.
#[derive(Debug, Default)]
pub(crate) struct Parties {
    pub(crate) all: Vec<Party>,
    pub(crate) n_looks: usize,
    /// Looks in which another than the first waited.
    pub(crate) n_others_wait: usize,
}

impl Parties {
    /// The one that used the disk most, if it did more than half of it all.
    pub(crate) fn main(&self) -> Option<&Party> {
        let first = self.all.first()?;
        let all: u64 = self.all.iter().map(|party| party.bytes).sum();
        (first.bytes > 0 && first.bytes.saturating_mul(2) > all).then_some(first)
    }

    /// Part of the looks in which another waited.
    pub(crate) fn others_wait(&self) -> f64 {
        self.n_others_wait as f64 / self.n_looks.max(1) as f64
    }
}

/// Who used a disk that was busy, and who waited for it.
pub(crate) fn parties(case: &Case<'_>, load: &Load<'_>) -> Parties {
    let (from, to) = load.span();
    let is_inside = |at: Moment| at >= from && at <= to;
    let names = names(case, load.disk);
    let is_only = is_only(case, load);
    // Bytes of a process are those of all disks. Only its open files tell which it used.
    let is_about = |says: &DiskUse| match &says.disks[..] {
        [] => is_only,
        disks => disks.iter().any(|disk| names.contains(disk)),
    };
    let node = Subject::node();
    let looks = case.samples(&DISK_WAITERS, &node);
    let mut parties: BTreeMap<String, Party> = BTreeMap::new();
    let mut waiting: BTreeMap<Moment, Vec<String>> = BTreeMap::new();
    let events = case.events(&DISK_USER);
    for event in events.filter(|event| is_inside(event.at) && is_about(event.says)) {
        let name = party_of(event.says);
        let party = parties.entry(name.clone()).or_default();
        party.add(&name, event.says);
        if event.says.waits {
            let names = waiting.entry(event.at).or_default();
            if !names.contains(&name) {
                party.n_waits += 1;
                names.push(name);
            }
        }
    }
    let mut all: Vec<Party> = parties.into_values().collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    let mut parties = Parties {
        all,
        n_looks: looks.filter(|(at, _)| is_inside(*at)).count(),
        n_others_wait: 0,
    };
    let main = parties.main().map(|main| main.name.clone());
    let another = |names: &&Vec<String>| names.iter().any(|name| Some(name) != main.as_ref());
    parties.n_others_wait = waiting.values().filter(another).count();
    parties
}

/// The disk and what is made of it (device mapper, RAID).
fn names(case: &Case<'_>, disk: &Subject) -> Vec<String> {
    let mut names = vec![disk.name.to_string()];
    // What is made of it may be part of something else; few levels are used.
    for _ in 0..3 {
        for event in case.events(&DISK_SEEN) {
            let name = event.subject.name.to_string();
            let mut parts = event.says.made_of.iter();
            let is_made_of = parts.any(|part| names.iter().any(|name| part.starts_with(name)));
            if is_made_of && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Whether nearly all that was read and written then was on this disk.
fn is_only(case: &Case<'_>, load: &Load<'_>) -> bool {
    let disks = case.by_subject(&fact::DISK_BUSY_RATIO);
    let names = names(case, load.disk);
    let others = disks
        .keys()
        .filter(|disk| !names.iter().any(|name| *name == *disk.name));
    let rate = |disk: &Subject| {
        grown(case, &fact::DISK_READ_BYTES, disk, load.span())
            + grown(case, &fact::DISK_WRITTEN_BYTES, disk, load.span())
    };
    let others: f64 = others.map(|disk| rate(disk)).sum();
    others <= 0.1 * load.bytes_per_second
}

impl Party {
    fn add(&mut self, name: &str, says: &DiskUse) {
        let bytes = says.read_bytes.saturating_add(says.written_bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.name.is_empty() || bytes > self.most {
            self.most = bytes;
            name.clone_into(&mut self.name);
            self.unit.clone_from(&unit_of(says));
            self.container.clone_from(&says.container);
            self.cgroup.clone_from(&says.cgroup);
            self.pid = says.pid;
            self.comm = says.comm.clone().unwrap_or_default();
        }
    }
}

fn unit_of(says: &DiskUse) -> Option<String> {
    let of_path = says.cgroup.as_deref().and_then(unit_name::of_path);
    of_path.or_else(|| says.unit.clone())
}

/// A container or a service is one party; a session or a slice is not, because people and
/// programs that have nothing to do with each other share it.
fn party_of(says: &DiskUse) -> String {
    let unit = unit_of(says).filter(|unit| unit.ends_with(".service"));
    match (&says.container, unit) {
        (Some(id), _) => format!("container {}", id.get(..12).unwrap_or(id)),
        (None, Some(unit)) => unit,
        (None, None) => match &says.comm {
            Some(comm) => comm.clone(),
            None => format!("process {}", says.pid),
        },
    }
}
