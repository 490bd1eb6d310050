//! Times in which tasks waited for memory, or for what was read again, and whose it was.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::Fact;
use sexton_model::fact::disk::DISK_USER;
use sexton_model::fact::memory::{self as fact, MEMORY_CGROUP, MEMORY_TASK, MemoryCgroup};
use sexton_model::fact::pressure::{
    PRESSURE_IO_SOME_RATIO, PRESSURE_MEMORY_FULL_RATIO, PRESSURE_MEMORY_SOME_RATIO,
};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::span;
use crate::words::unit_name;

/// A pause of up to so long does not end a stretch.
const PAUSE: Duration = Duration::from_secs(3);

/// Looks at cgroups are a few seconds apart: one after the end is about the time before.
const AFTER: Duration = Duration::from_secs(5);

/// A time in which memory was short, and what the node did in it. Rates are those of a second.
#[derive(Debug)]
pub(crate) struct Strain {
    /// The node, or the cgroup whose tasks waited.
    pub(crate) subject: Subject,
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    /// Part of the time in which a task waited for memory, and in which all did.
    pub(crate) some: Option<f64>,
    pub(crate) full: Option<f64>,
    /// Part of the time in which a task waited for I/O.
    pub(crate) io: Option<f64>,
    pub(crate) reread: f64,
    pub(crate) read: f64,
    pub(crate) swapped_in: f64,
    pub(crate) swapped_out: f64,
    /// Times that tasks had to reclaim because the node had too little.
    pub(crate) stalls: f64,
}

impl Strain {
    /// The longest time in which a fact of the node, or of a cgroup, was at least so large.
    pub(crate) fn longest(
        case: &Case<'_>,
        fact: &'static Fact,
        subject: &Subject,
        least: f64,
    ) -> Option<Self> {
        let span = span::longest_above(&samples(case, fact, subject), least, PAUSE)?;
        Some(Self::within(case, subject, span))
    }

    /// What was waited for in a time, and what the node did in it.
    pub(crate) fn within(case: &Case<'_>, subject: &Subject, span: (Moment, Moment)) -> Self {
        let node = Subject::node();
        let mean = |fact| span::mean(&samples(case, fact, subject), &[span]);
        let rate = |fact| span::growth(&samples(case, fact, &node), span).unwrap_or(0.0);
        Self {
            subject: subject.clone(),
            from: span.0,
            to: span.1,
            some: mean(&PRESSURE_MEMORY_SOME_RATIO),
            full: mean(&PRESSURE_MEMORY_FULL_RATIO),
            io: mean(&PRESSURE_IO_SOME_RATIO),
            reread: rate(&fact::MEMORY_REFAULT_BYTES),
            read: rate(&fact::MEMORY_READ_IN_BYTES),
            swapped_in: rate(&fact::MEMORY_SWAPPED_IN_BYTES),
            swapped_out: rate(&fact::MEMORY_SWAPPED_OUT_BYTES),
            stalls: rate(&fact::MEMORY_ALLOCATION_STALLS),
        }
    }

    pub(crate) fn length(&self) -> Duration {
        self.to.since(self.from)
    }

    /// Part of what was read from disks that had been in memory before.
    pub(crate) fn reread_part(&self) -> f64 {
        (self.reread / self.read.max(1.0)).min(1.0)
    }

    fn covers(&self, at: Moment) -> bool {
        at >= self.from && at <= self.to.after(AFTER)
    }
}

fn samples(case: &Case<'_>, fact: &'static Fact, subject: &Subject) -> Vec<(Moment, f64)> {
    case.samples(fact, subject).collect()
}

/// A memory cgroup in a time of strain.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Place {
    /// Its path.
    pub(crate) cgroup: String,
    pub(crate) unit: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) used: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) hits: u64,
    pub(crate) stalled: Option<Duration>,
    /// The time that looks at it were about.
    pub(crate) within: Duration,
}

impl Place {
    fn add(&mut self, says: &MemoryCgroup) {
        self.used = self.used.max(says.used_bytes);
        self.limit = says.limit_bytes;
        self.hits = self.hits.saturating_add(says.limit_hits);
        self.within += Duration::from_nanos(says.within_ns);
        let stalled = says.stalled_ns.map(Duration::from_nanos);
        self.stalled = match (self.stalled, stalled) {
            (Some(sum), Some(more)) => Some(sum + more),
            (one, other) => one.or(other),
        };
    }

    /// `db.service`, `container 4f2c…`, `cgroup /jobs/7`.
    pub(crate) fn name(&self) -> String {
        let unit = self.unit.as_deref().filter(|unit| is_owner(unit));
        match (&self.container, unit) {
            (Some(id), _) => format!("container {}", id.get(..12).unwrap_or(id)),
            (None, Some(unit)) => unit.to_owned(),
            (None, None) => format!("cgroup {}", self.cgroup),
        }
    }

    /// Whether a cgroup is this one or below it.
    fn has(&self, cgroup: &str) -> bool {
        let below = cgroup.strip_prefix(&self.cgroup);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// A slice or a session is no owner: what has nothing to do with each other shares it.
fn is_owner(unit: &str) -> bool {
    unit.ends_with(".service")
}

/// All memory cgroups that were told in that time, those that reached their limit most first.
pub(crate) fn places(case: &Case<'_>, strain: &Strain) -> Vec<Place> {
    let mut places: BTreeMap<&str, Place> = BTreeMap::new();
    let events = case.events(&MEMORY_CGROUP);
    for event in events.filter(|event| strain.covers(event.at)) {
        let path = &*event.subject.name;
        let place = places.entry(path).or_insert_with(|| Place {
            cgroup: path.to_owned(),
            unit: unit_name::of_path(path).or_else(|| event.says.unit.clone()),
            container: event.says.container.clone(),
            ..Place::default()
        });
        place.add(event.says);
    }
    let mut places: Vec<Place> = places.into_values().collect();
    // One whose own pressure tells that its tasks waited needs no look.
    let waited = &strain.subject;
    let is_known = places.iter().any(|place| *place.cgroup == *waited.name);
    if waited.kind == SubjectKind::Cgroup && !is_known {
        let path = &*waited.name;
        places.push(Place {
            cgroup: path.to_owned(),
            unit: unit_name::of_path(path),
            ..Place::default()
        });
    }
    places.sort_by(|a, b| b.hits.cmp(&a.hits).then_with(|| a.cgroup.cmp(&b.cgroup)));
    places
}

/// The cgroup whose own tasks waited; else the one that is at its limit and has most of the
/// trouble: most of the time that tasks of
/// cgroups at their limit waited, where the kernel tells, else most of the times that a limit was
/// reached.
pub(crate) fn main<'a>(strain: &Strain, places: &'a [Place]) -> Option<&'a Place> {
    if strain.subject.kind == SubjectKind::Cgroup {
        let mut places = places.iter();
        return places.find(|place| *place.cgroup == *strain.subject.name);
    }
    let at_limit = || places.iter().filter(|place| place.hits > 0);
    let tells = at_limit().any(|place| place.stalled.is_some_and(|time| !time.is_zero()));
    let trouble = |place: &&Place| match tells {
        true => place.stalled.unwrap_or_default().as_micros(),
        false => u128::from(place.hits),
    };
    let all: u128 = at_limit().map(|place| trouble(&place)).sum();
    let first = at_limit().max_by_key(trouble)?;
    (trouble(&first) * 2 > all).then_some(first)
}

/// A process in a time of strain.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Task {
    pub(crate) pid: String,
    pub(crate) comm: String,
    pub(crate) major_faults: u64,
    pub(crate) read_bytes: u64,
    pub(crate) resident: u64,
}

/// The processes of a cgroup, or of the node, that read most back in.
pub(crate) fn tasks(case: &Case<'_>, strain: &Strain, place: Option<&Place>) -> Vec<Task> {
    let is_of = |cgroup: Option<&str>| match place {
        Some(place) => cgroup.is_some_and(|cgroup| place.has(cgroup)),
        None => true,
    };
    let mut tasks: BTreeMap<&str, Task> = BTreeMap::new();
    let told = case.events(&MEMORY_TASK);
    let told = told.filter(|event| strain.covers(event.at));
    for event in told.filter(|event| is_of(event.says.cgroup.as_deref())) {
        let task = tasks.entry(&event.subject.name).or_default();
        task.comm = event.says.comm.clone().unwrap_or_default();
        task.major_faults += event.says.major_faults;
        task.resident = task.resident.max(event.says.resident_bytes);
    }
    let users = case.events(&DISK_USER);
    let users = users.filter(|event| strain.covers(event.at));
    for event in users.filter(|event| is_of(event.says.cgroup.as_deref())) {
        let task = tasks.entry(&event.subject.name).or_default();
        task.comm = event.says.comm.clone().unwrap_or_default();
        task.read_bytes = task.read_bytes.saturating_add(event.says.read_bytes);
    }
    let named = tasks.into_iter().map(|(pid, task)| Task {
        pid: pid.to_owned(),
        ..task
    });
    let mut tasks: Vec<Task> = named.collect();
    let key = |task: &Task| (task.major_faults, task.read_bytes, task.resident);
    tasks.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.pid.cmp(&b.pid)));
    tasks
}
