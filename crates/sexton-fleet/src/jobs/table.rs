//! Jobs of anything else, from a table: CSV with a line of names, or Parquet.

use std::collections::HashMap;

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

/// Reads it. Rows of the same job are its nodes.
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
    let mut jobs: Vec<Job> = Vec::new();
    let mut by_id: HashMap<(String, i64), usize> = HashMap::new();
    for (number, row) in texts.rows.iter().enumerate() {
        let cell = |name: &str| {
            row.get(at(name)?)?
                .as_deref()
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        match job_of(&cell, offset) {
            Ok(Some(job)) => match by_id.get(&(job.id.clone(), job.ended_us)) {
                Some(known) if jobs[*known].nodes.len() < MAX_NODES => {
                    jobs[*known].nodes.extend(job.nodes);
                }
                Some(_) => {}
                None => {
                    by_id.insert((job.id.clone(), job.ended_us), jobs.len());
                    jobs.push(job);
                }
            },
            Ok(None) => told.n_unfinished += 1,
            Err(why) => told.refuse(|| format!("row {}: {why}", number + 1)),
        }
    }
    for mut job in jobs {
        job.nodes.sort();
        job.nodes.dedup();
        told.take(job);
    }
    Ok(told)
}

/// The job of a row; none if it has not ended.
fn job_of<'a>(
    cell: &dyn Fn(&str) -> Option<&'a str>,
    offset: Offset,
) -> Result<Option<Job>, String> {
    let id = cell(column::JOB).ok_or("it has no job")?;
    let word = cell(column::OUTCOME).ok_or("it has no outcome")?;
    let outcome = match &*word.to_ascii_lowercase() {
        "succeeded" | "success" | "completed" | "complete" | "ok" => Outcome::Succeeded,
        "failed" | "failure" | "error" | "timeout" => Outcome::Failed,
        "stopped" | "cancelled" | "canceled" => Outcome::Stopped,
        "running" | "pending" | "queued" => return Ok(None),
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
    let ended_us = time(column::ENDED)?.ok_or("it has no time of its end")?;
    let own = |name: &str| cell(name).map(str::to_owned);
    Ok(Some(Job {
        id: id.to_owned(),
        name: own(column::NAME),
        user: own(column::USER),
        outcome,
        reason: own(column::REASON),
        exit_code: cell(column::EXIT_CODE).and_then(|code| code.parse().ok()),
        started_us: time(column::STARTED)?,
        ended_us,
        nodes: own(column::NODE).into_iter().collect(),
    }))
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
