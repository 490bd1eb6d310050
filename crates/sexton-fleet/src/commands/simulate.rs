//! `fleet simulate`: an invented fleet with a planted incident.

use std::io::Write;

use anyhow::{Context as _, Result};

use crate::bucket::Bucket;
use crate::simulate::{Incident, TRUTH, simulate};

#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// How many nodes
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// How many hours
    #[arg(long, default_value_t = 24)]
    hours: usize,
    /// The same seed gives the same fleet
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What is planted
    #[arg(long, default_value = "founding")]
    incident: Incident,
    /// Where to write it: a folder or a bucket
    #[arg(short, long, value_name = "URL", env = "SEXTON_LAKE")]
    output: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<u8> {
    let url = args.output.as_deref();
    let url = url.context("no bucket given: add -o URL, or set SEXTON_LAKE")?;
    let bucket = Bucket::open(url)?;
    let truth = simulate(&bucket, (args.nodes, args.hours), args.seed, args.incident)?;
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &truth)?;
        writeln!(out)?;
        return Ok(0);
    }
    let cause = match truth.cause.is_empty() {
        true => "no cause".to_owned(),
        false => truth.cause.join(" together with "),
    };
    writeln!(
        out,
        "Wrote {} reports of {} nodes to {url}.\n{} nodes are bad; planted: {cause} (see {TRUTH}).",
        truth.n_reports, args.nodes, truth.n_bad
    )?;
    Ok(0)
}
