//! Jobs of a scheduler: what became of them, and on which nodes they ran.
//!
//! They are imported into files beside the reports, `jobs/day=…/`, one row for each job and node.
//! A job counts once, however often it was imported; one that still ran is imported later.

mod joined;
pub mod kubernetes;
pub mod ray;
pub mod slurm;
pub mod table;
mod time;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use sexton_lake::{Cell, Put, SCHEMA, Table, day_of, digest_of, parquet_of};

use crate::bucket::Bucket;
pub use joined::{Jobs, RanJob, Rate, Rates};
pub use time::Offset;

/// The folder of jobs in a bucket.
pub const FOLDER: &str = "jobs";
/// Nodes of one job that are kept.
const MAX_NODES: usize = 20_000;
/// Of a text.
const MAX_TEXT: usize = 256;

/// The names of the columns of a job.
pub mod column {
    /// Which scheduler.
    pub const SOURCE: &str = "source";
    /// Its id there.
    pub const JOB: &str = "job";
    /// What it is called.
    pub const NAME: &str = "name";
    /// Whose it is.
    pub const USER: &str = "user";
    /// `succeeded`, `failed` or `stopped`.
    pub const OUTCOME: &str = "outcome";
    /// What the scheduler says of that.
    pub const REASON: &str = "reason";
    /// The code that it exited with.
    pub const EXIT_CODE: &str = "exit_code";
    /// When it started.
    pub const STARTED: &str = "started";
    /// When it ended.
    pub const ENDED: &str = "ended";
    /// A node that it ran on.
    pub const NODE: &str = "node";
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// As it should.
    Succeeded,
    /// By a failure of its own or of a node.
    Failed,
    /// Somebody or the scheduler took it back: neither of these.
    Stopped,
}

impl Outcome {
    /// As a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        [Self::Succeeded, Self::Failed, Self::Stopped]
            .into_iter()
            .find(|outcome| outcome.name() == name)
    }
}

/// A job that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its id; the same in every import.
    pub id: String,
    /// What it is called.
    pub name: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the scheduler says of that.
    pub reason: Option<String>,
    /// The code that it exited with.
    pub exit_code: Option<f64>,
    /// When it started, in microseconds since 1970.
    pub started_us: Option<i64>,
    /// When it ended.
    pub ended_us: i64,
    /// Where it ran.
    pub nodes: Vec<String>,
}

/// What a scheduler told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// Jobs that ended.
    pub jobs: Vec<Job>,
    /// Jobs that did not end yet.
    pub n_unfinished: usize,
    /// Jobs that ended, and of which it is not told where they ran: one that never started, mostly.
    pub n_without_node: usize,
    /// Lines or jobs that cannot be understood, and why the first of them cannot.
    pub not_understood: Option<(usize, String)>,
    /// What else is worth saying.
    pub notes: Vec<String>,
}

impl Told {
    /// Takes a job that ended.
    fn take(&mut self, job: Job) {
        match job.nodes.is_empty() {
            true => self.n_without_node += 1,
            false => self.jobs.push(job),
        }
    }

    /// Counts one that cannot be understood.
    fn refuse(&mut self, why: impl FnOnce() -> String) {
        match &mut self.not_understood {
            Some((n, _)) => *n += 1,
            None => self.not_understood = Some((1, why())),
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that are new.
    pub n_new: usize,
    /// Files that were there already.
    pub n_there: usize,
}

/// Writes jobs to a bucket, one file for each day on which jobs ended. The same jobs give files of
/// the same names, so that an import may be repeated.
pub fn write(bucket: &Bucket, source: &str, jobs: &[Job]) -> Result<Written> {
    let mut days: BTreeMap<String, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        days.entry(day_of(job.ended_us)).or_default().push(job);
    }
    let mut written = Written::default();
    for (day, mut jobs) in days {
        jobs.sort_by(|a, b| (&a.id, a.started_us).cmp(&(&b.id, b.started_us)));
        let mut table = Table::default();
        for job in jobs {
            rows(source, job, &mut table);
        }
        let bytes = parquet_of(table)?;
        let path = format!(
            "{FOLDER}/day={day}/{source}-{}.parquet",
            digest_of(&bytes, 8)
        );
        match bucket.put_new(&path, bytes)? {
            Put::New => written.n_new += 1,
            Put::AlreadyThere => written.n_there += 1,
        }
    }
    Ok(written)
}

fn rows(source: &str, job: &Job, table: &mut Table) {
    let text = |text: &str| {
        let cut = &text[..text.floor_char_boundary(MAX_TEXT)];
        Cell::Text(Arc::from(cut))
    };
    let mut cells = vec![
        (sexton_lake::column::SCHEMA, Cell::Number(f64::from(SCHEMA))),
        (column::SOURCE, text(source)),
        (column::JOB, text(&job.id)),
        (column::OUTCOME, text(job.outcome.name())),
        (column::ENDED, Cell::Time(job.ended_us)),
    ];
    let texts = [
        (column::NAME, &job.name),
        (column::USER, &job.user),
        (column::REASON, &job.reason),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)));
    cells.extend(texts.map(|(name, value)| (name, text(value))));
    cells.extend(
        job.exit_code
            .map(|code| (column::EXIT_CODE, Cell::Number(code))),
    );
    cells.extend(job.started_us.map(|at| (column::STARTED, Cell::Time(at))));
    for node in job.nodes.iter().take(MAX_NODES) {
        let node = (column::NODE, text(node));
        table.push(cells.iter().cloned().chain([node]));
    }
}
