//! Births of cgroups: when, where, by whom, and what became of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use sexton_model::fact::cgroup as fact;
use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::moment::Moment;
use sexton_model::origin::Origin;
use sexton_model::record::Record;
use sexton_model::text::escape;

use crate::case::Case;
use crate::known;
use crate::unit_name;

/// What was removed so shortly before the end may yet be released: the kernel does that
/// in its own time, by RCU and work queues.
const GRACE: Duration = Duration::from_secs(3);

/// A process, by name and number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Task<'a> {
    pub(crate) comm: &'a str,
    pub(crate) pid: &'a str,
}

/// One birth, or several of a burst that are alike.
#[derive(Debug, Clone)]
pub(crate) struct Birth<'a> {
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
pub(crate) struct Births<'a> {
    pub(crate) births: Vec<Birth<'a>>,
    fates: BTreeMap<String, Fate>,
}

impl<'a> Births<'a> {
    pub(crate) fn of(case: &Case<'a>) -> Self {
        let mut births: Vec<Birth<'a>> = case
            .of(&fact::CGROUP_BORN)
            .iter()
            .map(|r| born(r))
            .collect();
        let bursts = case.of(&fact::CGROUP_BURST).iter();
        births.extend(
            bursts
                .filter(|r| r.detail("what") == Some(fact::CGROUP_BORN.name))
                .map(|r| born(r)),
        );
        name_containers(case, &mut births);
        births.sort_by(|a, b| (a.at, a.path).cmp(&(b.at, b.path)));
        Self {
            births,
            fates: fates(case),
        }
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

fn born<'a>(record: &'a Record) -> Birth<'a> {
    let (path, n) = match record.detail("n") {
        Some(n) => (
            record.detail("pattern").unwrap_or_default(),
            n.parse().unwrap_or(1),
        ),
        None => (record.detail("path").unwrap_or_default(), 1),
    };
    let origin = Origin::of(path.as_bytes());
    let creator = record
        .detail("creator_comm")
        .zip(record.detail("creator_pid"));
    let ancestry = record.detail("creator_ancestry").unwrap_or_default();
    let mut makers: Vec<Task<'a>> = creator
        .map(|(comm, pid)| Task { comm, pid })
        .into_iter()
        .collect();
    makers.extend(ancestry.split(" < ").filter_map(task));
    Birth {
        at: record.at,
        n,
        path,
        pattern: escape(&origin.pattern()),
        unit: unit_name::of_path(path).or_else(|| Some(record.detail("unit")?.to_owned())),
        container: record.detail("container"),
        makers,
        creator_unit: creator_unit(record),
        asker: record.detail("asker_unit").zip(record.detail("asker_comm")),
    }
}

/// Who asks containerd by hand chooses ids, and then no path tells a container's. What a runtime
/// made, in a directory with the id of a container that it told of, is that container's.
fn name_containers<'a>(case: &Case<'a>, births: &mut [Birth<'a>]) {
    let told = [&CONTAINER_STARTED, &CONTAINER_EXITED].into_iter();
    let told = told.flat_map(|fact| case.of(fact));
    let ids: HashSet<&'a str> = told.filter_map(|record| record.detail("id")).collect();
    for birth in births.iter_mut().filter(|birth| birth.container.is_none()) {
        let maker = birth.makers.first();
        let is_by_runtime = maker.is_some_and(|maker| known::is_between(maker.comm));
        let name = birth.path.rsplit('/').next().unwrap_or_default();
        birth.container = ids.get(name).copied().filter(|_| is_by_runtime);
    }
}

/// The unit of the maker. Its own cgroup tells whether that is one of a user's manager.
fn creator_unit(record: &Record) -> Option<String> {
    let told = record.detail("creator_unit")?;
    let by_path = record.detail("creator_cgroup").and_then(unit_name::of_path);
    by_path
        .filter(|unit| unit_name::own(unit) == told)
        .or_else(|| Some(told.to_owned()))
}

/// `bash[812]`
fn task(text: &str) -> Option<Task<'_>> {
    let (comm, pid) = text.strip_suffix(']')?.rsplit_once('[')?;
    Some(Task { comm, pid })
}

fn fates(case: &Case<'_>) -> BTreeMap<String, Fate> {
    let mut fates: BTreeMap<String, Fate> = BTreeMap::new();
    let mut removed: HashMap<&str, String> = HashMap::new();
    let last = case.now().as_ns().saturating_sub(GRACE.as_nanos() as u64);
    for record in case.of(&fact::CGROUP_REMOVED) {
        let pattern = pattern_of(record.detail("path").unwrap_or_default());
        let fate = fates.entry(pattern.clone()).or_default();
        fate.n_removed += 1;
        let lived = record.detail("lived_ns").and_then(|ns| ns.parse().ok());
        fate.lived.extend(lived.map(Duration::from_nanos));
        if record.at.as_ns() <= last {
            fate.n_left += 1;
            if let Some(id) = record.detail("id") {
                removed.insert(id, pattern);
            }
        }
    }
    for record in case.of(&fact::CGROUP_RELEASED) {
        let pattern = record.detail("id").and_then(|id| removed.remove(id));
        if let Some(fate) = pattern.and_then(|pattern| fates.get_mut(&pattern)) {
            fate.n_left = fate.n_left.saturating_sub(1);
        }
    }
    for record in case.of(&fact::CGROUP_BURST) {
        let n: u64 = record.detail("n").and_then(|n| n.parse().ok()).unwrap_or(0);
        let fate = fates
            .entry(record.detail("pattern").unwrap_or_default().to_owned())
            .or_default();
        match record.detail("what") {
            Some("cgroup_removed") => {
                fate.n_removed += n;
                fate.n_left += n;
            }
            Some("cgroup_released") => fate.n_left = fate.n_left.saturating_sub(n),
            _ => {}
        }
    }
    fates
}
