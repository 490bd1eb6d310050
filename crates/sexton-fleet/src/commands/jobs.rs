//! `fleet jobs import`: jobs of a scheduler to the bucket.

use std::fs::File;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::text::escape;

use super::LakeArgs;
use crate::jobs::{self, Offset, Outcome, Told, Written, kubernetes, ray, slurm, table};
use crate::show;

/// The longest text that is read.
const MAX_BYTES: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    command: JobsCommand,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    /// Write jobs that ended to the bucket; top and compare then show success rates
    ///
    /// A job counts once, however often it is imported. Jobs that still run are left out: import
    /// them later. Nodes are joined by name; a scheduler may use the full name of a node, or the
    /// first part of it.
    Import(ImportArgs),
}

#[derive(Debug, Args)]
struct ImportArgs {
    #[command(flatten)]
    origin: Origin,
    /// How far times without a zone are ahead of UTC: +02:00
    ///
    /// sacct prints local time, unless SLURM_TIME_FORMAT=%s is set.
    #[arg(
        long,
        value_name = "OFFSET",
        default_value = "+00:00",
        allow_hyphen_values = true
    )]
    utc_offset: Offset,
    #[command(flatten)]
    lake: LakeArgs,
}

/// Where jobs come from; - is standard input.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Origin {
    /// A Ray cluster, by the address of its dashboard: http://ray-head:8265
    #[arg(long, value_name = "URL")]
    ray: Option<String>,
    /// Output of kubectl get jobs,pods --all-namespaces --output json
    #[arg(long, value_name = "FILE")]
    kubernetes: Option<PathBuf>,
    /// Output of sacct --allocations --parsable2
    ///
    /// With the columns JobID, State, End and NodeList, and if you like Cluster, User, ExitCode, Start
    /// and, as the last one, JobName.
    #[arg(long, value_name = "FILE")]
    slurm: Option<PathBuf>,
    /// CSV or Parquet with the columns job, node, outcome and ended
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

pub(super) fn run(args: &JobsArgs, out: &mut dyn Write) -> Result<u8> {
    let JobsCommand::Import(args) = &args.command;
    let bucket = args.lake.bucket()?;
    let from = &args.origin;
    let (source, told) = match (&from.ray, &from.kubernetes, &from.slurm, &from.table) {
        (Some(url), ..) => ("ray", ray::read(url, bucket.runtime())?),
        (_, Some(file), ..) => ("kubernetes", kubernetes::read(&text(file)?)?),
        (.., Some(file), _) => ("slurm", slurm::read(&text(file)?, args.utc_offset)?),
        (.., Some(file)) => ("table", table::read(bytes(file)?, args.utc_offset)?),
        _ => bail!("say where jobs come from: --ray, --kubernetes, --slurm or --table"),
    };
    if let (true, Some((n, why))) = (told.jobs.is_empty(), &told.not_understood) {
        bail!("no job can be read; {n} are not understood, the first because: {why}");
    }
    let written = jobs::write(&bucket, source, &told.jobs)?;
    match args.lake.json {
        true => write_json(source, &told, &written, out)?,
        false => write_text(bucket.url(), &told, &written, out)?,
    }
    Ok(0)
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin()
            .lock()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes),
        false => File::open(path)
            .with_context(cannot)?
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes),
    };
    read.with_context(cannot)?;
    ensure!(
        bytes.len() as u64 <= MAX_BYTES,
        "{} is larger than 1 GiB: import it in parts",
        path.display()
    );
    Ok(bytes)
}

fn text(path: &Path) -> Result<String> {
    let bytes = bytes(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn n_of(told: &Told, outcome: Outcome) -> usize {
    told.jobs
        .iter()
        .filter(|job| job.outcome == outcome)
        .count()
}

fn write_json(source: &str, told: &Told, written: &Written, out: &mut dyn Write) -> Result<()> {
    let answer = json!({
        "schema": "sexton.jobs/1",
        "source": source,
        "jobs": told.jobs.len(),
        "succeeded": n_of(told, Outcome::Succeeded),
        "failed": n_of(told, Outcome::Failed),
        "stopped": n_of(told, Outcome::Stopped),
        "unfinished": told.n_unfinished,
        "without_node": told.n_without_node,
        "not_understood": told.not_understood.as_ref().map_or(0, |(n, _)| *n),
        "notes": notes(told),
        "new_files": written.n_new,
        "files_already_there": written.n_there,
    });
    serde_json::to_writer_pretty(&mut *out, &answer)?;
    writeln!(out)?;
    Ok(())
}

fn notes(told: &Told) -> Vec<String> {
    let refused = told.not_understood.iter();
    let refused = refused
        .map(|(n, why)| format!("{n} are not understood and left out; the first because: {why}"));
    refused.chain(told.notes.iter().cloned()).collect()
}

fn write_text(url: &str, told: &Told, written: &Written, out: &mut dyn Write) -> Result<()> {
    let n = |outcome| show::count(n_of(told, outcome) as u64);
    show::wrapped(
        out,
        "",
        &format!(
            "Imported {} jobs to {url}: {} succeeded, {} failed, {} were stopped.",
            show::count(told.jobs.len() as u64),
            n(Outcome::Succeeded),
            n(Outcome::Failed),
            n(Outcome::Stopped)
        ),
    )?;
    if written.n_new == 0 && written.n_there > 0 {
        writeln!(out, "All of them were there already.")?;
    }
    if told.n_unfinished > 0 {
        writeln!(
            out,
            "{} have not ended: import them later.",
            show::count(told.n_unfinished as u64)
        )?;
    }
    if told.n_without_node > 0 {
        writeln!(
            out,
            "{} ran on no node that is named: left out.",
            show::count(told.n_without_node as u64)
        )?;
    }
    for note in notes(told) {
        show::wrapped(out, "", &escape(note.as_bytes()))?;
    }
    Ok(())
}
