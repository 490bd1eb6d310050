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

/// One time that a process was seen at it.
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
    let ratio = number("kernel_ratio").filter(|ratio| *ratio >= part)?;
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
        share: number("hot_share"),
        seen: walks::seen(record.detail("hot_stack")?)?,
        owners: owners.collect(),
    })
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
