//! Reads the reports of a time, each once, and collapses them to nodes.

mod claims;
mod hours;
mod nodes;
mod sets;

use std::sync::Arc;

use anyhow::{Result, bail};
use sexton_lake::{File, day_of};

use crate::bucket::{Bucket, Days, Entry};
use crate::jobs::Jobs;
pub use claims::{Claimed, Group, NO_NODE};
pub use hours::{Hours, NOT_SEEN, Open, SERIOUS, of_rank, signs};
pub use nodes::{Attribute, Broken, Change, JOBS_FAILED, JOBS_SUCCEEDED, Nodes, digests_of};
pub use sets::{AllSets, Sets};

/// From when to when; in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The begin.
    pub from_us: i64,
    /// The end, excluded.
    pub to_us: i64,
}

/// What was wrong with files of the lake. Counts are right without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// Files that could not be read, and why.
    pub unreadable: Vec<(String, String)>,
    /// Reports that were there twice, and counted once.
    pub n_duplicates: usize,
    /// Rows of another day than that of their folder, left out.
    pub n_wrong_day: usize,
    /// Rows without a node or a time, left out.
    pub n_nameless: usize,
    /// Folders that are called `day=…` and by no date, left out.
    pub not_days: Vec<String>,
    /// Folders of days that have not begun, left out: how many, and a file of the first.
    pub later_days: Option<(usize, String)>,
    /// Rows that begin after now, left out: how many, and a node of them.
    pub later_rows: Option<(usize, String)>,
    /// All reports are later than this, which is the time of this machine: none is left out.
    pub all_later_than: Option<String>,
    /// Names that several machines use at the same time, and how many do.
    pub shared_names: Vec<(String, usize)>,
    /// Sets that reports name and that are missing or damaged, with why.
    pub missing_sets: Vec<(String, String)>,
    /// Reports of a newer schema; what is not known of it is passed over.
    pub n_newer: usize,
    /// Jobs that ended after the newest report.
    pub n_later_jobs: usize,
    /// Jobs of which no node reported: how many, and one of their nodes.
    pub jobs_elsewhere: Option<(usize, String)>,
    /// Jobs of which some nodes did not report: how many, and one of these nodes.
    pub jobs_partly_elsewhere: Option<(usize, String)>,
}

impl Problems {
    /// Each in one line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let n = self.unreadable.len();
        for (path, why) in self.unreadable.iter().take(5) {
            lines.push(format!("left out {path}: {why}"));
        }
        if n > 5 {
            lines.push(format!("left out {} more files that cannot be read", n - 5));
        }
        if self.n_duplicates > 0 {
            lines.push(format!(
                "{} reports are stored twice: counted once",
                self.n_duplicates
            ));
        }
        if self.n_wrong_day > 0 {
            lines.push(format!(
                "left out {} rows that are in the folder of another day",
                self.n_wrong_day
            ));
        }
        if self.n_nameless > 0 {
            lines.push(format!(
                "left out {} rows without a node or a time",
                self.n_nameless
            ));
        }
        self.lines_of_times(&mut lines);
        for (name, machines) in self.shared_names.iter().take(5) {
            lines.push(format!(
                "{machines} machines report as {name} at the same time: counted as {machines} nodes; give each its own name"
            ));
        }
        for (set, why) in self.missing_sets.iter().take(5) {
            lines.push(format!(
                "units or software of some nodes are unknown: {set}: {why}"
            ));
        }
        if self.n_newer > 0 {
            lines.push(format!(
                "{} reports are by a newer sexton: columns that this one does not know are not compared",
                self.n_newer
            ));
        }
        self.lines_of_jobs(&mut lines);
        lines
    }

    fn lines_of_times(&self, lines: &mut Vec<String>) {
        for folder in self.not_days.iter().take(5) {
            lines.push(format!(
                "left out {folder}: its name is no date, as in day=2026-11-18"
            ));
        }
        if let Some((n, file)) = &self.later_days {
            lines.push(format!(
                "left out {n} days that have not begun ({file}): set the clock of the node that wrote this, or of this machine"
            ));
        }
        if let Some((n, node)) = &self.later_rows {
            lines.push(format!(
                "left out {n} rows that begin after now: set the clock of {node}, or of this machine"
            ));
        }
        if let Some(now) = &self.all_later_than {
            lines.push(format!(
                "all reports begin after now ({now}): counted; set the clock of this machine"
            ));
        }
    }

    fn lines_of_jobs(&self, lines: &mut Vec<String>) {
        if self.n_later_jobs > 0 {
            lines.push(format!(
                "{} jobs ended after the newest report: not counted",
                self.n_later_jobs
            ));
        }
        if let Some((n, node)) = &self.jobs_elsewhere {
            lines.push(format!(
                "{n} jobs ran only on nodes that did not report ({node}): not counted"
            ));
        }
        if let Some((n, node)) = &self.jobs_partly_elsewhere {
            lines.push(format!(
                "{n} jobs ran also on nodes that did not report ({node}): counted only with what their other nodes have"
            ));
        }
    }
}

/// The reports of a time.
pub struct Lake {
    /// Row groups, and the nodes of their rows.
    pub claimed: Claimed,
    /// What was wrong.
    pub problems: Problems,
    /// The time.
    pub window: Window,
    /// Jobs that ended in that time.
    pub jobs: Jobs,
}

/// What was read of a bucket: reports, their nodes, and the sets that they name.
pub struct Read {
    /// The reports.
    pub lake: Lake,
    /// The nodes.
    pub nodes: Nodes,
    /// The sets.
    pub sets: AllSets,
}

const US_PER_DAY: i64 = 86_400_000_000;

/// How far the clock of a node may be ahead of this machine's: its reports are not left out, and may
/// be the newest, where the time that is looked at ends.
const MAX_AHEAD_US: i64 = 3 * 3_600_000_000;

/// Reads the last `hours` hours of a bucket, which end with its newest report that began before
/// `now_us`, and collapses them to nodes.
pub fn read(bucket: &Bucket, hours: u64, now_us: i64) -> Result<(Lake, Nodes)> {
    let mut problems = Problems::default();
    let (days, limit_us) = days_until(bucket, now_us, &mut problems)?;
    let hours = i64::try_from(hours).unwrap_or(i64::MAX / 3_600_000_000);
    let span_us = hours.saturating_mul(3_600_000_000);
    let n_days = usize::try_from(span_us / US_PER_DAY).unwrap_or(usize::MAX);
    let first = days.len().saturating_sub(n_days.saturating_add(2));
    let mut files = Vec::new();
    for day in &days[first..] {
        let entries = bucket.files_of(day)?;
        let contents = bucket.get_all(&entries);
        for (Entry { path, .. }, content) in entries.into_iter().zip(contents) {
            let opened = match content {
                Ok(bytes) => File::open(bytes).map_err(|error| error.to_string()),
                Err(error) => Err(format!("{error:#}")),
            };
            match opened {
                Ok(file) => files.push((path, Arc::new(file))),
                Err(why) => problems.unreadable.push((path, why)),
            }
        }
    }
    loop {
        let mut found = problems.clone();
        let (claimed, window) = claims::claim(files.clone(), span_us, limit_us, &mut found);
        if claimed.names.is_empty() {
            let why = found.lines().join("; ");
            bail!("no report in {} can be read: {why}", bucket.url());
        }
        match nodes::collapse(&claimed) {
            Ok(mut nodes) => {
                let jobs = Jobs::fetch(bucket, window, &claimed.names, &mut found)?;
                nodes.take_jobs(&jobs);
                let lake = Lake {
                    claimed,
                    problems: found,
                    window,
                    jobs,
                };
                return Ok((lake, nodes));
            }
            // Once more without it: a file counts as a whole or not at all.
            Err(Broken { path, why }) => {
                files.retain(|(other, _)| *other != path);
                problems.unreadable.push((path, why));
            }
        }
    }
}

/// The days of a bucket that have begun, and from when on rows do not count. A node whose clock is wrong
/// must not decide which time is looked at. If all are later, it is this machine's clock that is wrong.
fn days_until(bucket: &Bucket, now_us: i64, problems: &mut Problems) -> Result<(Vec<String>, i64)> {
    let Days { mut dates, others } = bucket.days()?;
    let others = others.into_iter().map(|name| format!("day={name}"));
    problems.not_days.extend(others);
    let limit_us = now_us.saturating_add(MAX_AHEAD_US);
    let last = day_of(limit_us);
    let begun = dates.partition_point(|day| *day <= last);
    if begun == 0 {
        problems.all_later_than = (!dates.is_empty()).then(|| day_of(now_us));
        return Ok((dates, i64::MAX));
    }
    let later = dates.split_off(begun);
    if let Some(first) = later.first() {
        let files = bucket.files_of(first)?;
        let file = files.into_iter().next().map(|file| file.path);
        let file = file.unwrap_or_else(|| format!("day={first}"));
        problems.later_days = Some((later.len(), file));
    }
    Ok((dates, limit_us))
}
