//! Who was seen having the kernel work on memory cgroups.

use std::time::Duration;

use sexton_model::fact::napi::NAPI_STARVED;
use sexton_model::fact::stack::PROCESS_ON_CORE;
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::span::earlier;
use crate::walks::{self, Seen};

/// As many stacks of a process are told.
const MAX_STACKS: usize = 16;

/// Stacks that are told are all but a few when they have this part of the samples.
const MOST: f64 = 0.8;

/// One time that a process was seen at it.
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

/// All times that a process had at least this part of a core, or held one, at such work.
pub(crate) fn sightings(case: &Case<'_>, part: f64) -> Vec<Sighting> {
    let sampled = case.of(&PROCESS_ON_CORE).iter();
    // What sexton itself reads to take the time of it is not the node's trouble.
    let sampled = sampled.filter(|record| record.detail("own").is_none());
    let sampled = sampled.filter_map(|record| sampled_one(record, part));
    let holders = case.of(&NAPI_STARVED).iter();
    let holders = holders.filter(|record| record.detail("holder_own").is_none());
    let holders = holders.filter_map(|record| holder(record));
    sampled.chain(holders).collect()
}

fn sampled_one(record: &Record, part: f64) -> Option<Sighting> {
    let number = |key| {
        record
            .detail(key)
            .and_then(|value| value.parse::<f64>().ok())
    };
    let ratio = number("kernel_ratio")?;
    let (seen, share) = work(record)?;
    // Of the hottest stack alone nothing tells how much of the rest is the same work.
    let at_it = match share {
        Some(Share::OfWork(share)) => ratio * share,
        Some(Share::OfHottest(_)) | None => ratio,
    };
    if at_it < part {
        return None;
    }
    let owners = [("unit", SubjectKind::Unit), ("cgroup", SubjectKind::Cgroup)];
    let owners = owners.into_iter().filter_map(|(key, kind)| {
        let name = record.detail(key)?;
        Some(Subject::new(kind, name))
    });
    let interval = Duration::from_nanos(number("interval_ns").unwrap_or(0.0) as u64);
    Some(Sighting {
        comm: record.detail("comm").unwrap_or("a process").to_owned(),
        process: record.subject.clone(),
        core: Subject::new(SubjectKind::Cpu, record.detail("cpu")?),
        from: earlier(record.at, interval),
        to: record.at,
        ratio: Some(ratio),
        share,
        seen,
        owners: owners.collect(),
    })
}

/// What the stacks of a process show, and how much of its kernel time that is.
fn work(record: &Record) -> Option<(Seen, Option<Share>)> {
    let told = (1..=MAX_STACKS).map_while(|i| record.detail(&format!("stack_{i}")));
    let stacks = told.filter_map(|told| {
        let (n, stack) = told.split_once(' ')?;
        Some((n.parse().ok()?, stack))
    });
    let stacks: Vec<(u64, &str)> = stacks.collect();
    if stacks.is_empty() {
        let hottest = record.detail("hot_share").and_then(|n| n.parse().ok());
        let seen = walks::seen(record.detail("hot_stack")?)?;
        return Some((seen, hottest.map(Share::OfHottest)));
    }
    let told: u64 = stacks.iter().map(|(n, _)| n).sum();
    let work = walks::work(stacks.into_iter())?;
    // What is not told is little where most is; else it is as what is told.
    let all = record.detail("kernel_samples").and_then(|n| n.parse().ok());
    let all = all.filter(|all: &f64| told as f64 >= MOST * all);
    let part = all.map_or(1.0, |all| (told as f64 / all).min(1.0));
    Some((work.seen, Some(Share::OfWork(work.share * part))))
}

fn holder(record: &Record) -> Option<Sighting> {
    let ns = |key| {
        record
            .detail(key)
            .and_then(|value| value.parse::<u64>().ok())
    };
    let waited = Duration::from_nanos(ns("waited_ns")?);
    let pid = record.detail("holder_pid")?;
    Some(Sighting {
        comm: record
            .detail("holder_comm")
            .unwrap_or("a process")
            .to_owned(),
        process: Subject::new(SubjectKind::Process, pid),
        core: record.subject.clone(),
        from: earlier(record.at, waited),
        to: record.at,
        ratio: None,
        share: None,
        seen: walks::seen(record.detail("stack")?)?,
        owners: Vec::new(),
    })
}
