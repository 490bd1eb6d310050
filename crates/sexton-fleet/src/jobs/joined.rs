//! Jobs of a bucket, joined with the nodes that reported.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ahash::AHashMap;
use anyhow::Result;
use sexton_lake::{File, LakeError, TextColumn, redacted_name};

use super::{FOLDER, Outcome, column};
use crate::bucket::{Bucket, Entry};
use crate::lake::{Problems, Window};
use crate::stats::fisher::{self, Counts};
use crate::stats::special::Factorials;

/// A job and what is known of it.
#[derive(Debug, Clone)]
pub struct RanJob {
    /// Which scheduler.
    pub source: Arc<str>,
    /// Its id there.
    pub id: Arc<str>,
    /// What it is called.
    pub name: Option<Arc<str>>,
    /// Whose it is.
    pub user: Option<Arc<str>>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the scheduler says of that.
    pub reason: Option<Arc<str>>,
    /// The code that it exited with; `NaN` if that is not known.
    pub exit_code: f64,
    /// When it started.
    pub started_us: Option<i64>,
    /// When it ended.
    pub ended_us: i64,
    /// The names of its nodes.
    pub nodes: Vec<Arc<str>>,
    /// The numbers of those of its nodes that reported.
    pub numbers: Vec<u32>,
    /// How many of its nodes did not report.
    pub n_silent: usize,
}

/// Jobs that ended in the time that is looked at.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// Each once.
    pub all: Vec<RanJob>,
}

/// How many jobs succeeded, of those that succeeded or failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed.
    pub failed: u64,
}

impl Rate {
    /// All of them.
    pub fn all(self) -> u64 {
        self.succeeded + self.failed
    }

    /// The part that succeeded.
    pub fn share(self) -> f64 {
        self.succeeded as f64 / self.all().max(1) as f64
    }

    /// Counts a job.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Succeeded => self.succeeded += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Stopped => {}
        }
    }
}

/// Jobs on nodes that have something, and jobs elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// With at least one node that has it.
    pub with: Rate,
    /// With none.
    pub elsewhere: Rate,
    /// Jobs of which that cannot be told: on no node that has it, and on one that did not report, or of
    /// which it is not known.
    pub n_unknown: u64,
    /// The chance of so great a difference if it does not matter (Fisher, two-sided).
    pub p: f64,
}

impl Jobs {
    /// Reads the jobs of a bucket that ended in a time, and joins them with nodes by name.
    pub fn fetch(
        bucket: &Bucket,
        window: Window,
        names: &[String],
        problems: &mut Problems,
    ) -> Result<Self> {
        let mut read = Reading {
            window,
            by_key: AHashMap::new(),
            all: Vec::new(),
            n_later: 0,
        };
        let (first, last) = (
            sexton_lake::day_of(window.from_us),
            sexton_lake::day_of(window.to_us),
        );
        let days = bucket.days_in(FOLDER)?;
        let others = days.others.iter();
        problems
            .not_days
            .extend(others.map(|name| format!("{FOLDER}/day={name}")));
        let days = days.dates.iter().filter(|day| **day >= first);
        for day in days {
            let entries = bucket.files_in(&format!("{FOLDER}/day={day}"))?;
            let contents = bucket.get_all(&entries);
            for (Entry { path, .. }, content) in entries.into_iter().zip(contents) {
                let rows = match content {
                    Ok(bytes) => File::open(bytes)
                        .and_then(|file| rows_of(&file))
                        .map_err(|error| error.to_string()),
                    Err(error) => Err(format!("{error:#}")),
                };
                match rows {
                    Ok(rows) => read.take(rows, *day <= last),
                    Err(why) => problems.unreadable.push((path, why)),
                }
            }
        }
        problems.n_later_jobs += read.n_later;
        let mut jobs = Self { all: read.all };
        jobs.join(names, problems);
        Ok(jobs)
    }

    fn join(&mut self, names: &[String], problems: &mut Problems) {
        let names = Names::of(names);
        let (mut whole, mut partly) = (Silent::default(), Silent::default());
        for job in &mut self.all {
            // Several files may tell of a job, each with some of its nodes.
            job.nodes.sort_unstable();
            job.nodes.dedup();
            let numbers = job.nodes.iter().filter_map(|node| names.number(node));
            job.numbers = numbers.collect();
            job.n_silent = job.nodes.len() - job.numbers.len();
            job.numbers.sort_unstable();
            job.numbers.dedup();
            if job.n_silent > 0 {
                let silent = job.nodes.iter().find(|node| names.number(node).is_none());
                match job.numbers.is_empty() {
                    true => whole.add(silent),
                    false => partly.add(silent),
                }
            }
        }
        problems.jobs_elsewhere = whole.named();
        problems.jobs_partly_elsewhere = partly.named();
    }

    /// Whether there are any that can be told apart.
    pub fn is_empty(&self) -> bool {
        self.all
            .iter()
            .all(|job| job.numbers.is_empty() || job.outcome == Outcome::Stopped)
    }

    /// All jobs that ran on nodes that reported.
    pub fn rate(&self) -> Rate {
        let mut rate = Rate::default();
        let joined = self.all.iter().filter(|job| !job.numbers.is_empty());
        joined.for_each(|job| rate.add(job.outcome));
        rate
    }

    /// How jobs went on nodes of which something holds, and on nodes of which it does not. It is asked
    /// of a node and the end of a job, and may say that it does not know.
    pub fn rates(&self, holds: impl Fn(u32, i64) -> Option<bool>) -> Option<Rates> {
        let (mut with, mut elsewhere, mut unknown) =
            (Rate::default(), Rate::default(), Rate::default());
        for job in &self.all {
            let answers = job.numbers.iter().map(|node| holds(*node, job.ended_us));
            let answers: Vec<Option<bool>> = answers.collect();
            if answers.contains(&Some(true)) {
                with.add(job.outcome);
            } else if answers.is_empty() {
                // Not on any of the nodes that are looked at.
            } else if job.n_silent > 0 || answers.contains(&None) {
                unknown.add(job.outcome);
            } else {
                elsewhere.add(job.outcome);
            }
        }
        if with.all() == 0 || elsewhere.all() == 0 {
            return None;
        }
        let counts = Counts {
            bad_with: with.failed,
            bad_without: elsewhere.failed,
            good_with: with.succeeded,
            good_without: elsewhere.succeeded,
        };
        let p = fisher::p_value(counts, &Factorials::up_to(counts.all()));
        Some(Rates {
            with,
            elsewhere,
            n_unknown: unknown.all(),
            p,
        })
    }

    /// Of each node, how many jobs succeeded and failed there; none where none ran.
    pub fn of_nodes(&self, n_nodes: usize) -> Vec<Option<Rate>> {
        let mut rates = vec![None; n_nodes];
        for job in &self.all {
            for node in &job.numbers {
                rates[*node as usize]
                    .get_or_insert_with(Rate::default)
                    .add(job.outcome);
            }
        }
        rates
    }
}

/// Jobs on nodes that did not report.
#[derive(Default)]
struct Silent {
    n_jobs: usize,
    /// The first of these nodes by name.
    node: Option<Arc<str>>,
}

impl Silent {
    fn add(&mut self, node: Option<&Arc<str>>) {
        self.n_jobs += 1;
        if let Some(node) = node
            && self.node.as_ref().is_none_or(|known| node < known)
        {
            self.node = Some(node.clone());
        }
    }

    fn named(self) -> Option<(usize, String)> {
        Some((self.n_jobs, self.node?.to_string()))
    }
}

/// Nodes by their names. A scheduler may call a node by its full name, and the node itself by the first
/// part of it, or the other way round.
struct Names<'a> {
    full: HashMap<&'a str, u32>,
    /// None if several begin with it.
    short: HashMap<&'a str, Option<u32>>,
}

impl<'a> Names<'a> {
    fn of(names: &'a [String]) -> Self {
        let mut short: HashMap<&str, Option<u32>> = HashMap::new();
        for (number, name) in names.iter().enumerate() {
            let number = Some(number as u32);
            short
                .entry(first_part(name))
                .and_modify(|known| *known = None)
                .or_insert(number);
        }
        let full = names.iter().enumerate();
        Self {
            full: full
                .map(|(number, name)| (&**name, number as u32))
                .collect(),
            short,
        }
    }

    fn number(&self, name: &str) -> Option<u32> {
        let full = self.full.get(name).copied();
        full.or_else(|| self.full.get(&*redacted_name(name)).copied())
            .or_else(|| self.short.get(first_part(name)).copied().flatten())
    }
}

fn first_part(name: &str) -> &str {
    match name.parse::<IpAddr>() {
        Ok(_) => name,
        Err(_) => name.split('.').next().unwrap_or(name),
    }
}

/// A row of a file of jobs.
struct Row {
    job: RanJob,
    node: Arc<str>,
}

type Key = (Arc<str>, Arc<str>, i64);

struct Reading {
    window: Window,
    /// Where each job is; none if it ended later.
    by_key: AHashMap<Key, Option<usize>>,
    all: Vec<RanJob>,
    n_later: usize,
}

impl Reading {
    /// Takes the rows of a file. A job that an earlier file has, too, counts once, on the nodes of both:
    /// an import may know nodes that an earlier one did not.
    fn take(&mut self, rows: Vec<Row>, is_of_window: bool) {
        for Row { job, node } in rows {
            let is_later = !is_of_window || job.ended_us >= self.window.to_us;
            if !is_later && job.ended_us < self.window.from_us {
                continue;
            }
            let key = (job.source.clone(), job.id.clone(), job.ended_us);
            match self.by_key.get(&key) {
                Some(Some(at)) => self.all[*at].nodes.push(node),
                Some(None) => {}
                None => {
                    let at = (!is_later).then_some(self.all.len());
                    self.by_key.insert(key, at);
                    self.n_later += usize::from(is_later);
                    if !is_later {
                        self.all.push(RanJob {
                            nodes: vec![node],
                            ..job
                        });
                    }
                }
            }
        }
    }
}

fn rows_of(file: &File) -> Result<Vec<Row>, LakeError> {
    let mut rows = Vec::new();
    for group in 0..file.n_groups() {
        let texts = |name: &str| file.texts(group, name);
        let (source, id, node) = (
            texts(column::SOURCE)?,
            texts(column::JOB)?,
            texts(column::NODE)?,
        );
        let (name, user, reason) = (
            texts(column::NAME)?,
            texts(column::USER)?,
            texts(column::REASON)?,
        );
        let outcomes = texts(column::OUTCOME)?;
        let exit_codes = file.numbers(group, column::EXIT_CODE)?;
        let started = file.times(group, column::STARTED)?;
        let ended = file.times(group, column::ENDED)?;
        let get =
            |column: &TextColumn, row: usize| column.values.get(column.ids[row] as usize).cloned();
        for row in 0..file.n_rows(group) {
            let outcome = outcomes.get(row).and_then(Outcome::of_name);
            let (Some(source), Some(id), Some(node), Some(outcome), Some(ended_us)) = (
                get(&source, row),
                get(&id, row),
                get(&node, row),
                outcome,
                ended[row],
            ) else {
                return Err(LakeError::Malformed(
                    "a job lacks its id, outcome, end or node".to_owned(),
                ));
            };
            let job = RanJob {
                source,
                id,
                name: get(&name, row),
                user: get(&user, row),
                outcome,
                reason: get(&reason, row),
                exit_code: exit_codes[row],
                started_us: started[row],
                ended_us,
                nodes: Vec::new(),
                numbers: Vec::new(),
                n_silent: 0,
            };
            rows.push(Row { job, node });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_full_and_short_names() {
        let names = ["web1", "web2.example.org", "db.a", "db.b", "10.0.0.1"];
        let mut names = names.map(str::to_owned).to_vec();
        names.push(redacted_name("secret"));
        let names = Names::of(&names);
        let check = |name: &str, expected| assert_eq!(names.number(name), expected, "{name}");
        check("web1", Some(0));
        check("web1.example.org", Some(0));
        check("web2", Some(1));
        check("db", None);
        check("db.b", Some(3));
        check("10.0.0.1", Some(4));
        check("10.0.0.2", None);
        check("secret", Some(5));
    }

    fn job(nodes: &[&str], outcome: Outcome) -> RanJob {
        RanJob {
            source: "slurm".into(),
            id: "7".into(),
            name: None,
            user: None,
            outcome,
            reason: None,
            exit_code: f64::NAN,
            started_us: None,
            ended_us: 5,
            nodes: nodes.iter().map(|node| Arc::from(*node)).collect(),
            numbers: Vec::new(),
            n_silent: 0,
        }
    }

    #[test]
    fn a_job_on_a_silent_node_does_not_count_as_elsewhere() {
        let mut jobs = Jobs {
            all: vec![
                job(&["sick"], Outcome::Failed),
                job(&["sick", "dead"], Outcome::Failed),
                job(&["well"], Outcome::Succeeded),
                job(&["well", "dead"], Outcome::Failed),
                job(&["dead"], Outcome::Failed),
            ],
        };
        let mut problems = Problems::default();
        jobs.join(&["sick".to_owned(), "well".to_owned()], &mut problems);
        let rates = jobs.rates(|node, _| Some(node == 0)).unwrap();
        assert_eq!((rates.with.failed, rates.with.succeeded), (2, 0));
        assert_eq!((rates.elsewhere.failed, rates.elsewhere.succeeded), (0, 1));
        assert_eq!(rates.n_unknown, 1);
        assert_eq!(problems.jobs_elsewhere, Some((1, "dead".to_owned())));
        assert_eq!(problems.jobs_partly_elsewhere, Some((2, "dead".to_owned())));
    }

    #[test]
    fn a_job_of_two_files_is_on_the_nodes_of_both() {
        let row = |node: &str, ended_us| Row {
            job: RanJob {
                ended_us,
                ..job(&[], Outcome::Failed)
            },
            node: node.into(),
        };
        let window = Window {
            from_us: 0,
            to_us: 10,
        };
        let mut read = Reading {
            window,
            by_key: AHashMap::new(),
            all: Vec::new(),
            n_later: 0,
        };
        read.take(vec![row("b", 5)], true);
        read.take(vec![row("a", 5), row("b", 5), row("a", 6)], true);
        // In the folder of a later day, and again in that of its own.
        read.take(vec![row("a", 7)], false);
        read.take(vec![row("a", 7), row("b", 7)], true);
        let mut jobs = Jobs { all: read.all };
        jobs.join(&[], &mut Problems::default());
        let nodes = jobs.all.iter().map(|job| job.nodes.join(" "));
        assert_eq!(nodes.collect::<Vec<_>>(), ["a b", "a"]);
        assert_eq!(read.n_later, 1);
    }
}
