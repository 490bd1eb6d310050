//! Who was seen having the kernel work on memory cgroups.

use std::time::Duration;

use sexton_model::fact::napi::{NAPI_STARVED, NapiDelay};
use sexton_model::fact::stack::{PROCESS_ON_CORE, ProcessOnCore};
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::kernel_walks::{self, Seen};
use crate::evidence::span::earlier;

/// One time that a process was seen at it.
#[derive(Debug, Clone)]
pub(crate) struct Sighting {
    pub(crate) comm: String,
    pub(crate) process: Subject,
    pub(crate) core: Subject,
    pub(crate) from: Moment,
    pub(crate) to: Moment,
    /// Its part of the core in the kernel; `None` when it held the core as a whole.
    pub(crate) ratio: Option<f64>,
    /// The part of its kernel samples that had this very stack.
    pub(crate) share: Option<f64>,
    pub(crate) seen: Seen,
    pub(crate) owners: Vec<Subject>,
}

/// All times that a process was at such work.
pub(crate) fn sightings(case: &Case<'_>) -> Vec<Sighting> {
    let sampled = case.events(&PROCESS_ON_CORE);
    let sampled = sampled.filter_map(sampled_one);
    let holders = case.events(&NAPI_STARVED).filter_map(holder);
    sampled.chain(holders).collect()
}

fn sampled_one(event: Event<'_, ProcessOnCore>) -> Option<Sighting> {
    let says = event.says;
    let ratio = says.kernel_ratio?;
    let owners = [
        (&says.unit, SubjectKind::Unit),
        (&says.cgroup, SubjectKind::Cgroup),
    ];
    let owners = owners
        .into_iter()
        .filter_map(|(name, kind)| Some(Subject::new(kind, name.as_deref()?)));
    let interval = Duration::from_nanos(says.interval_ns.unwrap_or(0));
    Some(Sighting {
        comm: says.comm.as_deref().unwrap_or("a process").to_owned(),
        process: event.subject.clone(),
        core: Subject::cpu(says.cpu?),
        from: earlier(event.at, interval),
        to: event.at,
        ratio: Some(ratio),
        share: says.hot_share,
        seen: kernel_walks::seen(&says.hot_stack)?,
        owners: owners.collect(),
    })
}

fn holder(event: Event<'_, NapiDelay>) -> Option<Sighting> {
    let says = event.says;
    let waited = Duration::from_nanos(says.waited_ns?);
    Some(Sighting {
        comm: says
            .holder_comm
            .as_deref()
            .unwrap_or("a process")
            .to_owned(),
        process: Subject::new(SubjectKind::Process, says.holder_pid?.to_string()),
        core: event.subject.clone(),
        from: earlier(event.at, waited),
        to: event.at,
        ratio: None,
        share: None,
        seen: kernel_walks::seen(&says.stack)?,
        owners: Vec::new(),
    })
}
