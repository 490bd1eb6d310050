//! Which samples are asked about.

use std::ops::RangeInclusive;

use regex::Regex;
use sexton_model::origin::Origin;
use sexton_model::stack::{CoreState, NameId, StackId, StackSample, StackTables};
use sexton_model::text::unescape;

use crate::names::{self, Suffixes};

/// A moment of a recording, as people say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePoint {
    /// So many nanoseconds after the whole second in which the recording begins: where a
    /// heat map's first column starts.
    Offset(u64),
    /// By the recording's own clock.
    Clock(u64),
}

/// Which of several events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EventChoice {
    /// The first of the recording's list, or that of the first sample where it has none:
    /// cycles and page faults do not add up.
    #[default]
    First,
    /// The first of the list, where it is known by its name alone.
    FirstNamed(String),
    /// All of them.
    All,
    /// All that say what a core did: not of threads that waited.
    OfCores,
    /// The one of this name; `cycles` means `cycles:u`, too.
    Named(String),
}

/// What samples must be like. Empty lists and `None` allow all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Not before.
    pub from: Option<TimePoint>,
    /// Before.
    pub to: Option<TimePoint>,
    /// On one of these cores.
    pub cpus: Vec<u32>,
    /// Of a thread of one of these names.
    pub comms: Vec<String>,
    /// Of one of these processes.
    pub pids: Vec<u32>,
    /// Of one of these threads.
    pub tids: Vec<u32>,
    /// Of a cgroup at or below this path.
    pub cgroup: Option<String>,
    /// Of this systemd unit.
    pub unit: Option<String>,
    /// Of the container with this id, or whose id begins so.
    pub container: Option<String>,
    /// Of the pod with this uid, or whose uid begins so.
    pub pod: Option<String>,
    /// With a function in its stack that this matches.
    pub function: Option<Regex>,
    /// Of this event.
    pub event: EventChoice,
    /// Idle cores, too.
    pub idle: bool,
}

impl Filter {
    fn allows_any_home(&self) -> bool {
        let named = [&self.cgroup, &self.unit, &self.container, &self.pod];
        named.iter().all(|one| one.is_none())
    }

    /// Whether the path of a cgroup leads to the container and the pod that are asked about.
    fn is_of_container(&self, cgroup: &str) -> bool {
        if self.container.is_none() && self.pod.is_none() {
            return true;
        }
        let path = unescape(cgroup);
        let origin = Origin::of(&path);
        let container = origin.container();
        let pod = origin.pod();
        let begins = |wanted: &Option<String>, found: Option<&str>| {
            let wanted = wanted.as_deref();
            wanted.is_none_or(|wanted| found.is_some_and(|found| found.starts_with(wanted)))
        };
        begins(&self.container, container.as_ref().map(|one| one.id))
            && begins(&self.pod, pod.as_ref().map(|pod| pod.uid.as_str()))
    }
}

/// Applies a filter, and remembers what it said of names and stacks.
#[derive(Debug)]
pub struct Matcher {
    filter: Filter,
    comms: Verdicts,
    cgroups: Verdicts,
    events: Verdicts,
    stacks: Verdicts,
    frames: Verdicts,
    origin_ns: Option<u64>,
    first_event: Option<NameId>,
    other_events: Vec<NameId>,
}

/// Events besides the first one that are remembered to be named.
const MAX_OTHER_EVENTS: usize = 16;

const SECOND: u64 = 1_000_000_000;

impl Matcher {
    /// A matcher that has seen no sample yet.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            comms: Verdicts::default(),
            cgroups: Verdicts::default(),
            events: Verdicts::default(),
            stacks: Verdicts::default(),
            frames: Verdicts::default(),
            origin_ns: None,
            first_event: None,
            other_events: Vec::new(),
        }
    }

    /// Hears which events the recording has, in the order of its list.
    pub fn events(&mut self, names: &[NameId]) {
        if let Some(first) = names.first() {
            self.first_event.get_or_insert(*first);
        }
    }

    /// The event that was taken because it is the first, and others that were left out.
    pub fn default_event(&self) -> Option<(NameId, &[NameId])> {
        let is_default = matches!(
            self.filter.event,
            EventChoice::First | EventChoice::FirstNamed(_)
        );
        let first = self.first_event.filter(|_| is_default)?;
        Some((first, &self.other_events))
    }

    /// The whole second in which the recording begins, once a sample was seen.
    pub fn origin_ns(&self) -> Option<u64> {
        self.origin_ns
    }

    /// Hears when the recording begins, before its first sample.
    pub fn begin(&mut self, at_ns: u64) {
        self.origin_ns.get_or_insert(at_ns - at_ns % SECOND);
    }

    /// The times that are asked about, as far as it is known when the recording begins.
    pub fn window_ns(&self) -> RangeInclusive<u64> {
        let ns = |point| match (point, self.origin_ns) {
            (TimePoint::Clock(ns), _) => Some(ns),
            (TimePoint::Offset(ns), Some(origin)) => Some(origin.saturating_add(ns)),
            (TimePoint::Offset(_), None) => None,
        };
        let from = self.filter.from.and_then(ns).unwrap_or(0);
        let to = self.filter.to.and_then(ns);
        from..=to.map_or(u64::MAX, |to| to.saturating_sub(1))
    }

    /// Whether what it says depends on who ran, not just on when and where.
    pub fn looks_at_owners(&self) -> bool {
        let filter = &self.filter;
        let any_owner = filter.comms.is_empty() && filter.pids.is_empty();
        let any_owner = any_owner && filter.tids.is_empty();
        !(any_owner && filter.allows_any_home() && filter.event == EventChoice::OfCores)
    }

    /// Whether what it says depends on stacks.
    pub fn looks_at_stacks(&self) -> bool {
        self.filter.function.is_some()
    }

    /// Whether this sample is asked about. Samples are expected in the order of their times.
    pub fn accepts(&mut self, sample: &StackSample, tables: &StackTables) -> bool {
        self.is_in_window(sample) && self.accepts_owner(sample, tables)
    }

    /// Whether this sample is asked about, whatever its time is.
    pub fn accepts_owner(&mut self, sample: &StackSample, tables: &StackTables) -> bool {
        (self.filter.idle || sample.state != CoreState::Idle)
            && (self.filter.cpus.is_empty() || self.filter.cpus.contains(&sample.cpu))
            && (self.filter.pids.is_empty() || self.filter.pids.contains(&sample.pid))
            && (self.filter.tids.is_empty() || self.filter.tids.contains(&sample.tid))
            && self.is_of_event(sample, tables)
            && self.is_of_thread(sample, tables)
            && self.is_of_cgroup(sample, tables)
            && self.has_function(sample.stack, tables)
    }

    /// Whether the sample's time is asked about, whatever else it is.
    pub fn is_in_window(&mut self, sample: &StackSample) -> bool {
        let at = sample.at.as_ns();
        let origin = *self.origin_ns.get_or_insert(at - at % SECOND);
        let ns = |point| match point {
            TimePoint::Offset(ns) => origin.saturating_add(ns),
            TimePoint::Clock(ns) => ns,
        };
        self.filter.from.is_none_or(|from| ns(from) <= at)
            && self.filter.to.is_none_or(|to| at < ns(to))
    }

    fn is_of_event(&mut self, sample: &StackSample, tables: &StackTables) -> bool {
        match &self.filter.event {
            EventChoice::All => true,
            EventChoice::OfCores => sample.state != CoreState::Waiting,
            // The clock of cores comes before the waits that it was told with.
            EventChoice::First if sample.state == CoreState::Waiting => {
                self.leave_out(sample.event)
            }
            EventChoice::First => {
                let is_first = *self.first_event.get_or_insert(sample.event) == sample.event;
                is_first || self.leave_out(sample.event)
            }
            EventChoice::FirstNamed(wanted) => {
                let is_first = tables.name(sample.event) == wanted;
                if is_first {
                    self.first_event = Some(sample.event);
                }
                is_first || self.leave_out(sample.event)
            }
            EventChoice::Named(wanted) => self.events.get(sample.event.0, || {
                let name = tables.name(sample.event);
                name == wanted || name.split(':').next() == Some(wanted)
            }),
        }
    }

    /// Remembers an event that is not asked about; never says that it is.
    fn leave_out(&mut self, event: NameId) -> bool {
        let others = &mut self.other_events;
        if others.len() < MAX_OTHER_EVENTS && !others.contains(&event) {
            others.push(event);
        }
        false
    }

    fn is_of_thread(&mut self, sample: &StackSample, tables: &StackTables) -> bool {
        let wanted = &self.filter.comms;
        wanted.is_empty()
            || self.comms.get(sample.comm.0, || {
                wanted.iter().any(|name| name == tables.name(sample.comm))
            })
    }

    fn is_of_cgroup(&mut self, sample: &StackSample, tables: &StackTables) -> bool {
        let filter = &self.filter;
        if filter.allows_any_home() {
            return true;
        }
        let Some(cgroup) = sample.cgroup else {
            return false;
        };
        self.cgroups.get(cgroup.0, || {
            let path = tables.name(cgroup);
            let below = |parent: &str| {
                let rest = path.strip_prefix(parent.trim_end_matches('/'));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            filter.cgroup.as_deref().is_none_or(below)
                && filter
                    .unit
                    .as_deref()
                    .is_none_or(|unit| unit_of(path).as_deref() == Some(unit))
                && filter.is_of_container(path)
        })
    }

    fn has_function(&mut self, stack: StackId, tables: &StackTables) -> bool {
        let Some(wanted) = &self.filter.function else {
            return true;
        };
        let frames = &mut self.frames;
        self.stacks.get(stack.0, || {
            tables.frames_of(stack).any(|id| {
                frames.get(id.0, || {
                    let name = |frame| names::of_frame(tables, frame, "", Suffixes::default());
                    tables
                        .frame(id)
                        .map(name)
                        .is_some_and(|name| wanted.is_match(&name))
                })
            })
        })
    }
}

/// The systemd unit that a cgroup's path leads to, if one does.
pub fn unit_of(cgroup: &str) -> Option<String> {
    let path = unescape(cgroup);
    Origin::of(&path).unit().map(str::to_owned)
}

/// The id of the container that a cgroup's path leads to, if it leads to one.
pub fn container_of(cgroup: &str) -> Option<String> {
    let path = unescape(cgroup);
    Origin::of(&path)
        .container()
        .map(|container| container.id.to_owned())
}

/// The uid of the pod that a cgroup's path leads to, if it leads to one.
pub fn pod_of(cgroup: &str) -> Option<String> {
    let path = unescape(cgroup);
    Origin::of(&path).pod().map(|pod| pod.uid)
}

/// Answers by number, each found once.
#[derive(Debug, Default)]
struct Verdicts(Vec<Option<bool>>);

impl Verdicts {
    fn get(&mut self, id: u32, judge: impl FnOnce() -> bool) -> bool {
        let at = id as usize;
        if id == u32::MAX {
            return judge();
        }
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        *self.0[at].get_or_insert_with(judge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample_at;

    const ID: &str = "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa99887766554433221100";

    #[track_caller]
    fn check(container: Option<&str>, pod: Option<&str>, cgroup: &str, expected: bool) {
        let filter = Filter {
            container: container.map(str::to_owned),
            pod: pod.map(str::to_owned),
            ..Filter::default()
        };
        assert_eq!(filter.is_of_container(cgroup), expected, "{cgroup}");
    }

    #[test]
    fn waits_are_shown_only_if_they_are_asked_for() {
        let tables = StackTables {
            names: vec!["off-cpu".into(), "cpu-clock".into()],
            ..StackTables::default()
        };
        let wait = StackSample {
            state: CoreState::Waiting,
            event: NameId(0),
            ..sample_at(1, 0)
        };
        let ran = StackSample {
            event: NameId(1),
            ..sample_at(2, 0)
        };
        for (event, expected) in [
            (EventChoice::First, [false, true]),
            (EventChoice::OfCores, [false, true]),
            (EventChoice::All, [true, true]),
            (EventChoice::Named("off-cpu".into()), [true, false]),
        ] {
            let filter = Filter {
                event: event.clone(),
                ..Filter::default()
            };
            let mut matcher = Matcher::new(filter);
            let found = [&wait, &ran].map(|sample| matcher.accepts(sample, &tables));
            assert_eq!(found, expected, "{event:?}");
        }
    }

    #[test]
    fn containers_and_pods_are_found_by_the_beginning_of_their_id() {
        let docker = format!("/system.slice/docker-{ID}.scope");
        check(Some(ID), None, &docker, true);
        check(Some("3f4e5d6c7b8a"), None, &docker, true);
        check(Some("f4e5"), None, &docker, false);
        check(Some("3f4e"), None, "/system.slice/docker.service", false);
        let pod = "kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice";
        let in_pod =
            format!("/kubepods.slice/kubepods-burstable.slice/{pod}/cri-containerd-{ID}.scope");
        check(
            None,
            Some("01234567-89ab-cdef-0123-456789abcdef"),
            &in_pod,
            true,
        );
        check(Some("3f4e"), Some("01234567-89ab"), &in_pod, true);
        check(Some("3f4e"), Some("fedc"), &in_pod, false);
        check(None, Some("0123"), &docker, false);
    }
}
