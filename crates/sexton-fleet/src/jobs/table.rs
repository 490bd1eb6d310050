//! Jobs of anything else, from a table: CSV with a line of names, or Parquet.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use sexton_lake::{File, LakeError, TextColumn};

use super::time::{Offset, us_of};
use super::{Job, MAX_NODES, Outcome, Told, column};

/// Columns that a job cannot be told without.
const NEEDED: [&str; 4] = [column::JOB, column::NODE, column::OUTCOME, column::ENDED];
/// The begin of every Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Columns of texts, by name; times and numbers as texts.
struct Texts {
    names: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

/// Reads it.
pub fn read(bytes: Vec<u8>, offset: Offset) -> Result<Told> {
    let texts = match bytes.starts_with(PARQUET) {
        true => parquet(bytes.into())?,
        false => csv(&bytes)?,
    };
    let at = |wanted: &str| texts.names.iter().position(|name| name == wanted);
    let missing: Vec<&str> = NEEDED
        .into_iter()
        .filter(|name| at(name).is_none())
        .collect();
    if !missing.is_empty() {
        bail!(
            "the table has no column {}; it needs {}, and may have name, user, reason, exit_code and started",
            missing.join(", "),
            NEEDED.join(", ")
        );
    }
    let mut told = Told::default();
    let mut rows = Vec::new();
    for (number, row) in texts.rows.iter().enumerate() {
        let cell = |name: &str| {
            row.get(at(name)?)?
                .as_deref()
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        match row_of(&cell, offset) {
            Ok(row) => rows.push(row),
            Err(why) => told.refuse(|| format!("row {}: {why}", number + 1)),
        }
    }
    join(rows, &mut told);
    Ok(told)
}

/// A row: a job on one node.
struct Row {
    id: String,
    started_us: Option<i64>,
    node: Option<String>,
    /// None if it still runs there.
    ended: Option<Job>,
}

/// The rows of one job so far.
#[derive(Default)]
struct Run {
    nodes: BTreeSet<Option<String>>,
    ended: Option<Job>,
    still_runs: bool,
}

impl Run {
    fn add(&mut self, row: Row) {
        if self.nodes.len() < MAX_NODES {
            self.nodes.insert(row.node);
        }
        self.still_runs |= row.ended.is_none();
        self.ended = match (self.ended.take(), row.ended) {
            (Some(known), Some(new)) => {
                let ended_us = known.ended_us.max(new.ended_us);
                let graver = if gravity(new.outcome) > gravity(known.outcome) {
                    new
                } else {
                    known
                };
                Some(Job { ended_us, ..graver })
            }
            (known, new) => known.or(new),
        };
    }

    fn tell(self, told: &mut Told) {
        match self.ended {
            Some(job) if !self.still_runs => told.take(Job {
                nodes: self.nodes.into_iter().flatten().collect(),
                ..job
            }),
            _ => told.n_unfinished += 1,
        }
    }
}

/// A job failed if it did on any of its nodes.
fn gravity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Succeeded => 0,
        Outcome::Stopped => 1,
        Outcome::Failed => 2,
    }
}

/// Rows of the same job and start are its nodes. It may end on each of them at another time; on one
/// node it ends once, so what ends there again is another job of that name.
fn join(mut rows: Vec<Row>, told: &mut Told) {
    let ended_us = |row: &Row| row.ended.as_ref().map(|job| job.ended_us);
    // Those that still run come last.
    rows.sort_by_key(|row| ended_us(row).unwrap_or(i64::MAX));
    let mut runs: BTreeMap<(String, Option<i64>), Run> = BTreeMap::new();
    for row in rows {
        let run = runs.entry((row.id.clone(), row.started_us)).or_default();
        let last_us = run.ended.as_ref().map(|job| job.ended_us);
        if run.nodes.contains(&row.node) && last_us != ended_us(&row) {
            std::mem::take(run).tell(told);
        }
        run.add(row);
    }
    runs.into_values().for_each(|run| run.tell(told));
}

fn row_of<'a>(cell: &dyn Fn(&str) -> Option<&'a str>, offset: Offset) -> Result<Row, String> {
    let id = cell(column::JOB).ok_or("it has no job")?;
    let word = cell(column::OUTCOME).ok_or("it has no outcome")?;
    let outcome = match &*word.to_ascii_lowercase() {
        "succeeded" | "success" | "completed" | "complete" | "ok" => Some(Outcome::Succeeded),
        "failed" | "failure" | "error" | "timeout" => Some(Outcome::Failed),
        "stopped" | "cancelled" | "canceled" => Some(Outcome::Stopped),
        "running" | "pending" | "queued" => None,
        _ => {
            return Err(format!(
                "outcome {word:?} is none of succeeded, failed, stopped, running"
            ));
        }
    };
    let time = |name: &str| match cell(name) {
        Some(text) => us_of(text, offset)
            .map(Some)
            .ok_or_else(|| format!("{name} {text:?} is not a time")),
        None => Ok(None),
    };
    let own = |name: &str| cell(name).map(str::to_owned);
    let mut row = Row {
        id: id.to_owned(),
        started_us: time(column::STARTED)?,
        node: own(column::NODE),
        ended: None,
    };
    if let Some(outcome) = outcome {
        row.ended = Some(Job {
            id: id.to_owned(),
            name: own(column::NAME),
            user: own(column::USER),
            outcome,
            reason: own(column::REASON),
            exit_code: cell(column::EXIT_CODE).and_then(|code| code.parse().ok()),
            started_us: row.started_us,
            ended_us: time(column::ENDED)?.ok_or("it has no time of its end")?,
            nodes: Vec::new(),
        });
    }
    Ok(row)
}

fn csv(bytes: &[u8]) -> Result<Texts> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let names = reader
        .headers()
        .context("this is neither CSV with a line of names nor Parquet")?;
    let names = names.iter().map(|name| {
        name.trim()
            .trim_start_matches('\u{feff}')
            .to_ascii_lowercase()
    });
    let names = names.collect();
    let rows = reader
        .records()
        .map(|record| -> Result<Vec<Option<String>>> {
            let record = record.context("the table is damaged")?;
            Ok(record.iter().map(|cell| Some(cell.to_owned())).collect())
        });
    Ok(Texts {
        names,
        rows: rows.collect::<Result<_>>()?,
    })
}

fn parquet(bytes: Bytes) -> Result<Texts> {
    let file = File::open(bytes).context(
        "cannot read the table; write it as CSV, or as Parquet compressed with Zstandard",
    )?;
    let own = |names: Vec<&str>| -> Vec<String> { names.into_iter().map(str::to_owned).collect() };
    let texts = own(file.text_columns().collect());
    let numbers = own(file.number_columns().collect());
    let times = own(file.time_columns().collect());
    let mut rows = Vec::new();
    for group in 0..file.n_groups() {
        let damaged =
            "cannot read the table; write it as CSV, or as Parquet compressed with Zstandard";
        let texts: Vec<TextColumn> = texts
            .iter()
            .map(|name| file.texts(group, name))
            .collect::<Result<_, _>>()
            .context(damaged)?;
        let numbers: Vec<Vec<f64>> = numbers
            .iter()
            .map(|name| file.numbers(group, name))
            .collect::<Result<_, _>>()
            .context(damaged)?;
        let times: Vec<(bool, Vec<Option<i64>>)> = times
            .iter()
            .map(|name| -> Result<_, LakeError> {
                Ok((file.is_time(name), file.times(group, name)?))
            })
            .collect::<Result<_, LakeError>>()
            .context(damaged)?;
        for row in 0..file.n_rows(group) {
            let texts = texts
                .iter()
                .map(|column| column.get(row).map(str::to_owned));
            let numbers = numbers.iter().map(|column| plain(column[row]));
            let times = times.iter().map(|(is_time, column)| {
                column[row].map(|number| match is_time {
                    true => (number as f64 / 1e6).to_string(),
                    false => number.to_string(),
                })
            });
            rows.push(texts.chain(numbers).chain(times).collect());
        }
    }
    let names = texts.into_iter().chain(numbers).chain(times);
    Ok(Texts {
        names: names.map(|name| name.to_ascii_lowercase()).collect(),
        rows,
    })
}

fn plain(value: f64) -> Option<String> {
    value.is_finite().then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs of a table, as `id outcome second nodes`, and how many have not ended.
    fn told(table: &str) -> (Vec<String>, usize) {
        let told = read(table.as_bytes().to_vec(), Offset::default()).unwrap();
        assert_eq!(told.not_understood, None);
        let jobs = told.jobs.iter().map(|job| {
            let (id, outcome, nodes) = (&job.id, job.outcome.name(), job.nodes.join("+"));
            format!("{id} {outcome} {} {nodes}", job.ended_us / 1_000_000)
        });
        (jobs.collect(), told.n_unfinished)
    }

    #[track_caller]
    fn check(rows: &str, jobs: &[&str], n_unfinished: usize) {
        let found = told(&format!("job,node,outcome,started,ended\n{rows}"));
        assert_eq!(found.0, jobs);
        assert_eq!(found.1, n_unfinished);
    }

    #[test]
    fn nodes_that_end_at_different_times_are_one_job() {
        check(
            "7,a,succeeded,1,60\n7,b,failed,1,65\n7,c,succeeded,1,70\n8,a,ok,,60\n8,b,ok,,61",
            &["7 failed 70 a+b+c", "8 succeeded 61 a+b"],
            0,
        );
        // On one node it still runs.
        check("7,a,succeeded,1,60\n7,b,running,1,", &[], 1);
    }

    #[test]
    fn a_name_that_is_used_again_is_another_job() {
        check(
            "n,a,ok,1,60\nn,a,failed,1001,1060\nn,b,ok,1001,1061",
            &["n succeeded 60 a", "n failed 1061 a+b"],
            0,
        );
        check(
            "n,a,ok,,60\nn,b,ok,,61\nn,a,failed,,1060\nn,b,running,,\nm,a,ok,,60\nm,a,running,,",
            &["n succeeded 61 a+b", "m succeeded 60 a"],
            2,
        );
    }
}
