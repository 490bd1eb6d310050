//! The commands, one file each.

mod compare;
mod jobs;
mod push;
mod serve;
mod simulate;
mod sql;
mod top;
mod views;

use std::io::Write;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use sexton_model::wall::unix_ns;

use crate::bucket::Bucket;
pub(crate) use compare::compared;
pub(crate) use views::views_of_tables;

/// Finds which nodes of a fleet are bad, since when, and what they have in common.
#[derive(Debug, Parser)]
#[command(name = "sexton fleet", version, max_term_width = 80, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 nothing found, 1 differences or findings, 2 wrong use or internal
failure, 3 not enough reports to tell.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the report of a recording to the bucket
    ///
    /// One file for a node, boot and hour: the first stays, so that a push may be repeated.
    Push(push::PushArgs),
    /// What differs between bad and good nodes: units, packages, images, labels, facts
    ///
    /// Tests everything that reports tell, alone and in pairs, and shows what tells bad from
    /// good nodes best; whatever only comes with that is shown below it. Exits with 1 when
    /// something differs, with 0 when nothing does, and with 3 when there are too few nodes.
    Compare(compare::CompareArgs),
    /// Jobs of Ray, Kubernetes, Slurm or any other scheduler
    Jobs(jobs::JobsArgs),
    /// Sickest nodes and most frequent causes, by image, zone, kernel or any other column
    ///
    /// Exits with 1 when a node has a finding, with 0 when none has.
    Top(top::TopArgs),
    /// Show the fleet in the browser: nodes by time, causes over time, comparisons
    Serve(serve::ServeArgs),
    /// Run SQL on the reports
    ///
    /// The tables are reports (a node in an hour), findings, and sets (units and software).
    /// docs/fleet.md describes their columns.
    Sql(sql::SqlArgs),
    /// Print the views for another engine that reads the same bucket
    Views(views::ViewsArgs),
    /// Write the reports of an invented fleet with a planted incident
    Simulate(simulate::SimulateArgs),
}

/// Which bucket.
#[derive(Debug, Clone, Args)]
pub(crate) struct LakeArgs {
    /// The bucket with the reports: a folder, file://, s3://, gs:// or az://
    #[arg(long, value_name = "URL", env = "SEXTON_LAKE")]
    lake: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LakeArgs {
    fn bucket(&self) -> Result<Bucket> {
        let url = self
            .lake
            .as_deref()
            .context("no bucket given: add --lake URL, or set SEXTON_LAKE")?;
        Bucket::open(url)
    }
}

/// How much of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct TimeArgs {
    /// How far back to look from the newest report: 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = hours)]
    since: u64,
    /// Take this for the current time; reports that are 3 h later or more are left out
    ///
    /// For a bucket as it was then: 2026-11-18T06:00:00Z. Without it, the clock of this machine.
    #[arg(long, value_name = "TIME", env = "SEXTON_NOW", value_parser = time)]
    now: Option<i64>,
}

impl TimeArgs {
    /// In microseconds since 1970.
    fn now_us(&self) -> i64 {
        self.now.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let us = since
                .ok()
                .and_then(|since| since.as_micros().try_into().ok());
            // A clock before 1970 knows nothing: then all reports are later, which is said.
            us.unwrap_or(0)
        })
    }
}

fn time(text: &str) -> Result<i64, String> {
    let us = unix_ns(text).and_then(|ns| i64::try_from(ns / 1000).ok());
    us.ok_or_else(|| format!("{text:?} is not a time: write 2026-11-18T06:00:00Z"))
}

fn hours(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a time: write 24h or 7d");
    let (number, hours) = match text.strip_suffix('d') {
        Some(days) => (days, 24),
        None => (text.strip_suffix('h').ok_or_else(wrong)?, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let hours = number
        .checked_mul(hours)
        .filter(|hours| (1..=24 * 3660).contains(hours));
    hours.ok_or_else(wrong)
}

impl Cli {
    /// Carries the command out, and returns the exit code.
    pub fn run(self) -> Result<u8> {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let exit = match self.command {
            Command::Push(args) => push::run(&args, &mut out),
            Command::Compare(args) => compare::run(&args, &mut out),
            Command::Jobs(args) => jobs::run(&args, &mut out),
            Command::Top(args) => top::run(&args, &mut out),
            Command::Serve(args) => serve::run(&args, &mut out),
            Command::Sql(args) => sql::run(&args, &mut out),
            Command::Views(args) => views::run(&args, &mut out),
            Command::Simulate(args) => simulate::run(&args, &mut out),
        }?;
        out.flush().context("cannot write the answer")?;
        Ok(exit)
    }
}
