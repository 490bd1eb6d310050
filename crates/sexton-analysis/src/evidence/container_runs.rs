//! Lives of containers, as their runtime told them: of the watch, and of the minutes before.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::container::{self as fact, ContainerExited, ContainerStarted};
use sexton_model::moment::Moment;
use sexton_model::record::Event;

use crate::case::Case;

/// One life of a container, from a start to an exit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContainerRun<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) image: &'a str,
    pub(crate) runtime: Option<&'a str>,
    /// `namespace/pod`.
    pub(crate) pod: Option<String>,
    /// How often a kubelet or Docker had started it before.
    pub(crate) attempt: Option<u64>,
    pub(crate) project: Option<&'a str>,
    pub(crate) started: Option<Moment>,
    pub(crate) ended: Option<Moment>,
    pub(crate) lived: Option<Duration>,
    pub(crate) exit_code: Option<i64>,
}

impl ContainerRun<'_> {
    /// When it was first heard of.
    pub(crate) fn at(&self) -> Moment {
        self.started.or(self.ended).unwrap_or_default()
    }
}

/// Runs by image, each in the order of time.
pub(crate) type ByImage<'a> = BTreeMap<&'a str, Vec<ContainerRun<'a>>>;

/// All runs by image, in the order of time. What has no image goes by its name.
pub(crate) fn by_image<'a>(case: &Case<'a>) -> ByImage<'a> {
    let mut open: BTreeMap<&'a str, ContainerRun<'a>> = BTreeMap::new();
    let mut lives: Vec<ContainerRun<'a>> = Vec::new();
    let started = case.events(&fact::CONTAINER_STARTED).map(Change::Started);
    let exited = case.events(&fact::CONTAINER_EXITED).map(Change::Exited);
    let mut changes: Vec<Change<'a>> = started.chain(exited).collect();
    // Of one moment the start comes first, as it does here.
    changes.sort_by_key(Change::at);
    for change in changes {
        match change {
            Change::Started(event) => {
                let mut life = started_life(event);
                life.started = Some(event.at);
                lives.extend(open.insert(life.id, life));
            }
            Change::Exited(event) => {
                let life = exited_life(event);
                let mut life = open.remove(life.id).unwrap_or(life);
                end(&mut life, event);
                lives.push(life);
            }
        }
    }
    lives.extend(open.into_values());
    let mut by_image: BTreeMap<&'a str, Vec<ContainerRun<'a>>> = BTreeMap::new();
    for life in lives {
        by_image.entry(life.image).or_default().push(life);
    }
    for lives in by_image.values_mut() {
        lives.sort_by_key(|life| (life.at(), life.id));
    }
    by_image
}

/// A start or an exit.
#[derive(Debug, Clone, Copy)]
enum Change<'a> {
    Started(Event<'a, ContainerStarted>),
    Exited(Event<'a, ContainerExited>),
}

impl Change<'_> {
    fn at(&self) -> (Moment, bool) {
        match self {
            Change::Started(event) => (event.at, false),
            Change::Exited(event) => (event.at, true),
        }
    }
}

/// What both say of a container, in the same words.
macro_rules! life_of {
    ($event:expr) => {{
        let says = $event.says;
        let name = says.name.as_deref();
        ContainerRun {
            id: says.id.as_deref().unwrap_or(&$event.subject.name),
            name,
            image: says.image.as_deref().or(name).unwrap_or("unknown"),
            runtime: says.runtime.as_deref(),
            pod: pod(says.pod.as_deref(), says.pod_namespace.as_deref()),
            attempt: says.attempt,
            project: says.compose_project.as_deref(),
            started: None,
            ended: None,
            lived: None,
            exit_code: None,
        }
    }};
}

fn started_life<'a>(event: Event<'a, ContainerStarted>) -> ContainerRun<'a> {
    life_of!(event)
}

fn exited_life<'a>(event: Event<'a, ContainerExited>) -> ContainerRun<'a> {
    life_of!(event)
}

fn pod(pod: Option<&str>, namespace: Option<&str>) -> Option<String> {
    let pod = pod?;
    Some(match namespace {
        Some(namespace) => format!("{namespace}/{pod}"),
        None => pod.to_owned(),
    })
}

fn end(life: &mut ContainerRun<'_>, event: Event<'_, ContainerExited>) {
    life.ended = Some(event.at);
    life.exit_code = event.says.exit_code;
    let told = event.says.lifetime_ms.map(Duration::from_millis);
    let seen = life.started.map(|started| event.at.since(started));
    life.lived = told.or(seen);
}
