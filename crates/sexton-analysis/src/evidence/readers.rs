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

/// Stacks that are told are all but a few when they have this part of the samples.
const MOST: f64 = 0.8;

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
    pub(crate) share: Option<Share>,
    pub(crate) seen: Seen,
    /// Statistics that it had open: paths in the hierarchy of memory cgroups.
    pub(crate) statistics: Vec<String>,
    pub(crate) owners: Vec<Subject>,
}

/// What a part of the kernel samples of a process is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Share {
    /// All that are at such work, by the stacks that were seen most.
    OfWork(f64),
    /// Those of the one stack that was seen most: older recordings have no other.
    OfHottest(f64),
}

impl Sighting {
    /// Its part of the core at such work, at the most; `None` when it held the core as a whole.
    pub(crate) fn part(&self) -> Option<f64> {
        let ratio = self.ratio?;
        // Of the hottest stack alone nothing tells how much of the rest is the same work.
        Some(match self.share {
            Some(Share::OfWork(share)) => ratio * share,
            Some(Share::OfHottest(_)) | None => ratio,
        })
    }
}

/// All times that a process was at such work. What sexton itself reads to take the time of it
/// is not the node's trouble.
pub(crate) fn sightings(case: &Case<'_>) -> Vec<Sighting> {
    let sampled = case.events(&PROCESS_ON_CORE);
    let sampled = sampled.filter(|event| event.says.own != Some(true));
    let sampled = sampled.filter_map(sampled_one);
    let holders = case.events(&NAPI_STARVED);
    let holders = holders.filter(|event| event.says.holder_own != Some(true));
    sampled.chain(holders.filter_map(holder)).collect()
}

fn sampled_one(event: Event<'_, ProcessOnCore>) -> Option<Sighting> {
    let says = event.says;
    let ratio = says.kernel_ratio?;
    let (seen, share) = work(says)?;
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
        share,
        seen,
        statistics: says.statistics.clone(),
        owners: owners.collect(),
    })
}

/// What the stacks of a process show, and how much of its kernel time that is.
fn work(says: &ProcessOnCore) -> Option<(Seen, Option<Share>)> {
    if says.stacks.is_empty() {
        let seen = kernel_walks::seen(&says.hot_stack)?;
        return Some((seen, says.hot_share.map(Share::OfHottest)));
    }
    let told: u64 = says.stacks.iter().map(|stack| stack.samples).sum();
    let work = kernel_walks::work(&says.stacks)?;
    // What is not told is little where most is; else it is as what is told.
    let all = says.kernel_samples.map(|all| all as f64);
    let all = all.filter(|all| told as f64 >= MOST * all);
    let part = all.map_or(1.0, |all| (told as f64 / all).min(1.0));
    Some((work.seen, Some(Share::OfWork(work.share * part))))
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
        statistics: Vec::new(),
        owners: Vec::new(),
    })
}
