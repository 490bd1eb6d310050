//! What one runtime's containers are doing, made of what its daemon says.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use sexton_model::fact::container::{self as fact, ContainerExited, ContainerStarted, OutOfMemory};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_runtimes::{Happening, Identity, Listed, PAST_LIMIT, State, What};

use super::NAME;

/// A container is young for so long.
const YOUNG_NS: u64 = 60_000_000_000;

/// Containers that are followed at most. Ten times what a kubelet can be told to take.
const RUNNING_LIMIT: usize = 10_000;

/// Events that are remembered, to know those that a daemon tells twice. By number, not by
/// time: a clock that was set back must neither hide events nor repeat them.
const SEEN_LIMIT: usize = 2 * PAST_LIMIT;

/// The end of a container that the list no longer has may still be on its way.
const GRACE: Duration = Duration::from_secs(10);

/// The exit code of a process that was ended by SIGKILL.
const BY_SIGKILL: i64 = 137;

/// Now, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) at: Moment,
    pub(super) wall_ns: u64,
}

impl Now {
    /// When the wall clock said that. Wrong by as much as it was set since.
    fn moment(self, wall_ns: u64) -> Moment {
        let ago = self.wall_ns.saturating_sub(wall_ns);
        Moment::from_ns(self.at.as_ns().saturating_sub(ago))
    }
}

/// Containers of one image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Churn {
    pub(super) n_young: u64,
    pub(super) n_births: u64,
}

/// The containers of one runtime.
#[derive(Debug)]
pub(super) struct Tracker {
    runtime: &'static str,
    opened_wall_ns: u64,
    running: HashMap<String, Run>,
    births: HashMap<String, u64>,
    seen: Seen,
    last_wall_ns: u64,
}

/// One container's life from a start to an exit.
#[derive(Debug)]
struct Run {
    identity: Identity,
    started_ns: Option<u64>,
    created_ns: Option<u64>,
    ran_out_of_memory: bool,
    was_killed: bool,
    missing_since: Option<Moment>,
}

impl Tracker {
    pub(super) fn new(runtime: &'static str, opened_wall_ns: u64) -> Self {
        Self {
            runtime,
            opened_wall_ns,
            running: HashMap::new(),
            births: HashMap::new(),
            seen: Seen::default(),
            last_wall_ns: 0,
        }
    }

    /// When the last event was; 0 before the first.
    pub(super) fn last_wall_ns(&self) -> u64 {
        self.last_wall_ns
    }

    pub(super) fn n_running(&self) -> usize {
        self.running.len()
    }

    /// Takes in an event, unless it was told before.
    pub(super) fn take(&mut self, happening: Happening, now: Now, out: &mut Sink) {
        let Happening {
            identity,
            what,
            wall_ns,
        } = happening;
        if !self.seen.is_new((wall_ns, identity.key(), what)) {
            return;
        }
        self.last_wall_ns = wall_ns;
        match what {
            What::Started => self.start(identity, wall_ns, now, out),
            What::Exited { code, lived_s } => {
                let run = self.running.remove(&identity.key());
                let exit = Exit {
                    code,
                    lifetime_ms: lifetime_ms(run.as_ref(), wall_ns, lived_s),
                    oom: oom(run.as_ref(), code),
                };
                self.tell_exit(&identity, &exit, wall_ns, now, out);
            }
            What::OutOfMemory => {
                if let Some(run) = self.running.get_mut(&identity.key()) {
                    run.ran_out_of_memory = true;
                }
            }
            What::Killed => {
                if let Some(run) = self.running.get_mut(&identity.key()) {
                    run.was_killed = true;
                }
            }
        }
    }

    fn start(&mut self, identity: Identity, wall_ns: u64, now: Now, out: &mut Sink) {
        if wall_ns >= self.opened_wall_ns && !identity.image.is_empty() {
            *self.births.entry(identity.image.clone()).or_default() += 1;
        }
        let subject = Subject::new(SubjectKind::Container, identity.id.as_str());
        let at = now.moment(wall_ns);
        let started = self.started(&identity, wall_ns);
        out.event(at, &subject, &fact::CONTAINER_STARTED, started);
        self.adopt(
            Run {
                started_ns: Some(wall_ns),
                ..Run::new(identity)
            },
            out,
        );
    }

    fn adopt(&mut self, run: Run, out: &mut Sink) {
        if self.running.len() >= RUNNING_LIMIT {
            let text = format!(
                "over {RUNNING_LIMIT} containers of {} run; lifetimes of the others are not told",
                self.runtime
            );
            return out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(1), text));
        }
        self.running.insert(run.identity.key(), run);
    }

    fn tell_exit(&self, identity: &Identity, exit: &Exit, wall_ns: u64, now: Now, out: &mut Sink) {
        let subject = Subject::new(SubjectKind::Container, identity.id.as_str());
        let exited = self.exited(identity, exit, wall_ns);
        out.event(
            now.moment(wall_ns),
            &subject,
            &fact::CONTAINER_EXITED,
            exited,
        );
    }

    fn started(&self, identity: &Identity, wall_ns: u64) -> ContainerStarted {
        ContainerStarted {
            id: Some(identity.id.clone()),
            name: identity.name.clone(),
            image: image_of(identity),
            runtime: Some(self.runtime.to_owned()),
            namespace: identity.namespace.clone(),
            pod: identity.pod.clone(),
            pod_namespace: identity.pod_namespace.clone(),
            pod_uid: identity.pod_uid.clone(),
            attempt: identity.attempt.map(u64::from),
            compose_project: identity.compose_project.clone(),
            before_open: Some(wall_ns < self.opened_wall_ns),
            wall_ns: Some(wall_ns),
        }
    }

    fn exited(&self, identity: &Identity, exit: &Exit, wall_ns: u64) -> ContainerExited {
        ContainerExited {
            id: Some(identity.id.clone()),
            name: identity.name.clone(),
            image: image_of(identity),
            exit_code: exit.code,
            oom: Some(exit.oom),
            lifetime_ms: exit.lifetime_ms,
            runtime: Some(self.runtime.to_owned()),
            namespace: identity.namespace.clone(),
            pod: identity.pod.clone(),
            pod_namespace: identity.pod_namespace.clone(),
            pod_uid: identity.pod_uid.clone(),
            attempt: identity.attempt.map(u64::from),
            compose_project: identity.compose_project.clone(),
            before_open: Some(wall_ns < self.opened_wall_ns),
            wall_ns: Some(wall_ns),
        }
    }

    /// Takes in what there is. Lives that began unseen are known from now on; those that
    /// ended unseen are told by [`Self::settle`].
    pub(super) fn list(&mut self, list: Vec<Listed>, now: Now, out: &mut Sink) {
        let mut missing: HashSet<String> = self.running.keys().cloned().collect();
        let running = list
            .into_iter()
            .filter(|listed| listed.state == State::Runs);
        for listed in running {
            let key = listed.identity.key();
            missing.remove(&key);
            if let Some(run) = self.running.get_mut(&key) {
                run.missing_since = None;
            } else {
                self.adopt(
                    Run {
                        created_ns: listed.created_ns,
                        started_ns: listed.started_ns,
                        ..Run::new(listed.identity)
                    },
                    out,
                );
            }
        }
        for id in missing {
            if let Some(run) = self.running.get_mut(&id) {
                run.missing_since.get_or_insert(now.at);
            }
        }
    }

    /// Ends a poll: tells of lives whose end nobody told.
    pub(super) fn settle(&mut self, now: Now, out: &mut Sink) {
        let n_before = self.running.len();
        self.running.retain(|_, run| {
            run.missing_since
                .is_none_or(|since| now.at.since(since) < GRACE)
        });
        let n = (n_before - self.running.len()) as u64;
        if n > 0 {
            let text = format!(
                "{n} containers of {} ended unseen: exit code and lifetime are not known",
                self.runtime
            );
            out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(n), text));
        }
    }

    /// Adds what this runtime has of every image; births since this was asked last.
    pub(super) fn churn(&mut self, now: Now, images: &mut BTreeMap<String, Churn>) {
        for (image, n) in self.births.drain() {
            images.entry(image).or_default().n_births += n;
        }
        for run in self.running.values() {
            // A container is made before it is started.
            let since = run.started_ns.or(run.created_ns);
            let is_young = since.is_some_and(|since| now.wall_ns.saturating_sub(since) < YOUNG_NS);
            if is_young && !run.identity.image.is_empty() {
                images
                    .entry(run.identity.image.clone())
                    .or_default()
                    .n_young += 1;
            }
        }
    }
}

/// The last events.
#[derive(Debug, Default)]
struct Seen {
    events: HashSet<(u64, String, What)>,
    in_order: VecDeque<(u64, String, What)>,
}

impl Seen {
    /// Whether this is none of the last events; now it is.
    fn is_new(&mut self, event: (u64, String, What)) -> bool {
        if !self.events.insert(event.clone()) {
            return false;
        }
        self.in_order.push_back(event);
        if self.in_order.len() > SEEN_LIMIT
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.events.remove(&oldest);
        }
        true
    }
}

impl Run {
    fn new(identity: Identity) -> Self {
        Self {
            identity,
            started_ns: None,
            created_ns: None,
            ran_out_of_memory: false,
            was_killed: false,
            missing_since: None,
        }
    }
}

struct Exit {
    code: Option<i64>,
    lifetime_ms: Option<u64>,
    oom: OutOfMemory,
}

fn image_of(identity: &Identity) -> Option<String> {
    Some(identity.image.clone()).filter(|image| !image.is_empty())
}

/// From the daemon's own stamps, else as it says itself. None if the start was not seen
/// or the clock was set back.
fn lifetime_ms(run: Option<&Run>, ended_ns: u64, lived_s: Option<u64>) -> Option<u64> {
    let lived_ns = run
        .and_then(|run| run.started_ns)
        .and_then(|started| ended_ns.checked_sub(started));
    let by_daemon = || lived_s.and_then(|s| s.checked_mul(1000));
    lived_ns.map(|ns| ns / 1_000_000).or_else(by_daemon)
}

/// Whether the kernel ended it for want of memory. A SIGKILL that nobody asked the
/// daemon for may be that: Docker 20.10 and Podman 4.3 were both seen to tell nothing of
/// an OOM kill but exit code 137.
fn oom(run: Option<&Run>, code: Option<i64>) -> OutOfMemory {
    match (run, code) {
        (Some(run), _) if run.ran_out_of_memory => OutOfMemory::Yes,
        (Some(run), Some(BY_SIGKILL)) if run.was_killed => OutOfMemory::No,
        (_, Some(BY_SIGKILL) | None) => OutOfMemory::Unknown,
        (_, Some(_)) => OutOfMemory::No,
    }
}
