//! Births of cgroups: when, where, by whom, and what became of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use sexton_model::fact::cgroup::{self as fact, CgroupBurst, CgroupChange, CgroupCreated};
use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::moment::Moment;
use sexton_model::origin::Origin;
use sexton_model::record::Event;
use sexton_model::text::escape;

use crate::case::Case;
use crate::evidence::known;
use crate::words::unit_name;

/// What was removed so shortly before the end may yet be released: the kernel does that
/// in its own time, by RCU and work queues.
const GRACE: Duration = Duration::from_secs(3);

/// A process, by name and number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Task<'a> {
    pub(crate) comm: &'a str,
    pub(crate) pid: u32,
}

/// One birth, or several of a burst that are alike.
#[derive(Debug, Clone)]
pub(crate) struct Creation<'a> {
    pub(crate) at: Moment,
    /// How many.
    pub(crate) n: u64,
    /// The path, or of a burst the pattern.
    pub(crate) path: &'a str,
    pub(crate) pattern: String,
    /// The unit that the path tells; one of a user's own manager is told with it.
    pub(crate) unit: Option<String>,
    /// The container that the path tells, or the runtime.
    pub(crate) container: Option<&'a str>,
    /// Who made it and what is above, nearest first.
    pub(crate) makers: Vec<Task<'a>>,
    /// The unit of the maker, or of the nearest above it that has one.
    pub(crate) creator_unit: Option<String>,
    /// Of a scope: the unit of the process that asked for it, and its name.
    pub(crate) asker: Option<(&'a str, &'a str)>,
}

/// What became of the cgroups of one pattern.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fate {
    pub(crate) n_removed: u64,
    /// Those of the removed that the kernel still held at the end.
    pub(crate) n_left: u64,
    /// How long those lived whose birth and removal were seen.
    pub(crate) lived: Vec<Duration>,
}

/// All that was seen of births.
#[derive(Debug, Default)]
pub(crate) struct Creations<'a> {
    pub(crate) creations: Vec<Creation<'a>>,
    n_by_pattern: HashMap<String, u64>,
    fates: BTreeMap<String, Fate>,
}

impl<'a> Creations<'a> {
    pub(crate) fn of(case: &Case<'a>) -> Self {
        let mut creations: Vec<Creation<'a>> = case.events(&fact::CGROUP_BORN).map(born).collect();
        let bursts = case.events(&fact::CGROUP_BURST);
        creations.extend(
            bursts
                .filter(|burst| burst.says.what == Some(CgroupChange::Created))
                .map(born_in_burst),
        );
        name_containers(case, &mut creations);
        creations.sort_by(|a, b| (a.at, a.path).cmp(&(b.at, b.path)));
        let mut n_by_pattern: HashMap<String, u64> = HashMap::new();
        for creation in &creations {
            match n_by_pattern.get_mut(&creation.pattern) {
                Some(n) => *n += creation.n,
                None => drop(n_by_pattern.insert(creation.pattern.clone(), creation.n)),
            }
        }
        Self {
            creations,
            n_by_pattern,
            fates: fates(case),
        }
    }

    /// How many there are of a pattern.
    pub(crate) fn n_of(&self, pattern: &str) -> u64 {
        self.n_by_pattern.get(pattern).copied().unwrap_or(0)
    }

    /// What became of those of a pattern.
    pub(crate) fn fate(&self, pattern: &str) -> Fate {
        self.fates.get(pattern).cloned().unwrap_or_default()
    }
}

/// The pattern that all cgroups alike have.
pub(crate) fn pattern_of(path: &str) -> String {
    escape(&Origin::of(path.as_bytes()).pattern())
}

fn born<'a>(event: Event<'a, CgroupCreated>) -> Creation<'a> {
    let says = event.says;
    let unit = unit_name::of_path(&says.path);
    Creation {
        at: event.at,
        n: 1,
        path: &says.path,
        pattern: pattern_of(&says.path),
        unit: unit.or_else(|| says.unit.clone()),
        container: says.container.as_deref(),
        makers: makers(
            says.creator_comm.as_deref(),
            says.creator_pid,
            &says.creator_ancestry,
        ),
        creator_unit: creator_unit(says.creator_unit.as_ref(), says.creator_cgroup.as_ref()),
        asker: says.asker_unit.as_deref().zip(says.asker_comm.as_deref()),
    }
}

fn born_in_burst<'a>(event: Event<'a, CgroupBurst>) -> Creation<'a> {
    let says = event.says;
    Creation {
        at: event.at,
        n: says.n,
        path: &says.pattern,
        pattern: pattern_of(&says.pattern),
        unit: unit_name::of_path(&says.pattern),
        container: None,
        makers: makers(
            says.creator_comm.as_deref(),
            says.creator_pid,
            &says.creator_ancestry,
        ),
        creator_unit: creator_unit(says.creator_unit.as_ref(), says.creator_cgroup.as_ref()),
        asker: None,
    }
}

fn makers<'a>(
    comm: Option<&'a str>,
    pid: Option<u32>,
    above: &'a [sexton_model::fact::task::Task],
) -> Vec<Task<'a>> {
    let creator = comm.zip(pid).map(|(comm, pid)| Task { comm, pid });
    let above = above.iter().map(|task| Task {
        comm: &task.comm,
        pid: task.pid,
    });
    creator.into_iter().chain(above).collect()
}

/// A user of containerd may choose ids that no path shows to be a container's. A directory that a
/// runtime created, and whose name is the id of a container it reported, is that container's.
fn name_containers<'a>(case: &Case<'a>, creations: &mut [Creation<'a>]) {
    let started = case.events(&CONTAINER_STARTED).map(|event| &event.says.id);
    let exited = case.events(&CONTAINER_EXITED).map(|event| &event.says.id);
    let ids: HashSet<&'a str> = started
        .chain(exited)
        .flatten()
        .map(String::as_str)
        .collect();
    for creation in creations
        .iter_mut()
        .filter(|creation| creation.container.is_none())
    {
        let maker = creation.makers.first();
        let is_by_runtime = maker.is_some_and(|maker| known::is_between(maker.comm));
        let name = creation.path.rsplit('/').next().unwrap_or_default();
        creation.container = ids.get(name).copied().filter(|_| is_by_runtime);
    }
}

/// The unit of the maker. Its own cgroup tells whether that is one of a user's manager.
fn creator_unit(told: Option<&String>, cgroup: Option<&String>) -> Option<String> {
    let told = told?;
    let by_path = cgroup.and_then(|cgroup| unit_name::of_path(cgroup));
    by_path
        .filter(|unit| unit_name::own(unit) == told)
        .or_else(|| Some(told.clone()))
}

fn fates(case: &Case<'_>) -> BTreeMap<String, Fate> {
    let mut fates: BTreeMap<String, Fate> = BTreeMap::new();
    let mut removed: HashMap<u64, String> = HashMap::new();
    let last = case.now().as_ns().saturating_sub(GRACE.as_nanos() as u64);
    for event in case.events(&fact::CGROUP_REMOVED) {
        let pattern = pattern_of(&event.says.path);
        let fate = fates.entry(pattern.clone()).or_default();
        fate.n_removed += 1;
        fate.lived
            .extend(event.says.lived_ns.map(Duration::from_nanos));
        if event.at.as_ns() <= last {
            fate.n_left += 1;
            removed.extend(event.says.id.map(|id| (id, pattern)));
        }
    }
    for event in case.events(&fact::CGROUP_RELEASED) {
        let pattern = event.says.id.and_then(|id| removed.remove(&id));
        if let Some(fate) = pattern.and_then(|pattern| fates.get_mut(&pattern)) {
            fate.n_left = fate.n_left.saturating_sub(1);
        }
    }
    for event in case.events(&fact::CGROUP_BURST) {
        let n = event.says.n;
        let fate = fates.entry(event.says.pattern.clone()).or_default();
        match event.says.what {
            Some(CgroupChange::Removed) => {
                fate.n_removed += n;
                fate.n_left += n;
            }
            Some(CgroupChange::Released) => fate.n_left = fate.n_left.saturating_sub(n),
            _ => {}
        }
    }
    fates
}
