//! `fleet push`: the report of a recording to the bucket.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sexton_analysis::Policy;
use sexton_lake::{Given, Put, Recording, Redact, Report, Spool, path_of_set, report_of_recording};
use sexton_model::node::Node;
use sexton_model::text::escape;
use sexton_model::wall::WallClock;
use sexton_store::Bundle;

use super::LakeArgs;
use crate::bucket::Bucket;

#[derive(Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// The recording: a bundle, or the agent's ring
    #[arg(long, value_name = "BUNDLE", required_unless_present = "spool")]
    from: Option<PathBuf>,
    /// Send what waits in this folder instead, and remove what was sent; the agent does so
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["from", "label", "redact"])]
    spool: Option<PathBuf>,
    /// What the node is called by: zone=us-east-1a, team=ml; may be repeated
    ///
    /// Labels called image, image_build, instance_type, kernel, os, zone, nic_driver,
    /// cgroup_layout or profile replace what was recorded.
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Leave out: node (its name becomes a digest), subjects (titles and names of findings)
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    redact: Vec<Hidden>,
    #[command(flatten)]
    lake: LakeArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Hidden {
    Node,
    Subjects,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| format!("{text:?} is not a label: write NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) fn run(args: &PushArgs, out: &mut dyn Write) -> Result<u8> {
    let bucket = args.lake.bucket()?;
    if let Some(spool) = &args.spool {
        return ship(&Spool::at(spool), &bucket, args.lake.json, out);
    }
    let from = args
        .from
        .as_deref()
        .context("no recording given: add --from BUNDLE")?;
    let mut report = made(args, from)?;
    let put = put(&bucket, &mut report)?;
    let path = report.path();
    if args.lake.json {
        let answer = serde_json::json!({
            "schema": "sexton.push/1",
            "path": path,
            "new": put == Put::New,
            "left_out": report.n_left_out,
        });
        serde_json::to_writer_pretty(&mut *out, &answer)?;
        writeln!(out)?;
        return Ok(0);
    }
    match put {
        Put::New => writeln!(out, "Wrote {path} to {}.", bucket.url())?,
        Put::AlreadyThere => writeln!(
            out,
            "{path} is in {} already: the first report of an hour stays.",
            bucket.url()
        )?,
    }
    Ok(0)
}

fn made(args: &PushArgs, from: &Path) -> Result<Report> {
    let bundle = Bundle::open(from)?;
    let records = bundle.load_to_judge();
    let node = Node {
        name: escape(bundle.node().name.as_bytes()),
        kernel: escape(bundle.node().kernel.as_bytes()),
        boot_id: escape(bundle.node().boot_id.as_bytes()),
        ..Node::default()
    };
    let diagnosis = sexton_analysis::judge(&records, &Policy::default());
    let given = Given {
        sexton: env!("CARGO_PKG_VERSION").to_owned(),
        labels: args.label.iter().cloned().collect(),
        redact: Redact {
            node: args.redact.contains(&Hidden::Node),
            subjects: args.redact.contains(&Hidden::Subjects),
        },
    };
    let recording = Recording {
        node: &node,
        clock: &WallClock::of(&records),
        timeline: &records,
        diagnosis: &diagnosis,
        given: &given,
    };
    report_of_recording(&recording)
        .with_context(|| format!("cannot make a report of {}", from.display()))
}

/// Sends what waits. What was sent counts, even if the bucket fails after that.
fn ship(spool: &Spool, bucket: &Bucket, json: bool, out: &mut dyn Write) -> Result<u8> {
    let (shipped, result) = spool.ship(|path, bytes| bucket.put_new(path, bytes));
    result?;
    if json {
        let answer = serde_json::json!({
            "schema": "sexton.ship/1",
            "sent": shipped.n_sent,
            "already_there": shipped.n_already_there,
        });
        serde_json::to_writer_pretty(&mut *out, &answer)?;
        writeln!(out)?;
        return Ok(0);
    }
    writeln!(
        out,
        "Sent {} report(s) to {}; {} of them were there already.",
        shipped.n_sent,
        bucket.url(),
        shipped.n_already_there
    )?;
    Ok(0)
}

/// Sets first: a report must not name what is not there.
fn put(bucket: &Bucket, report: &mut Report) -> Result<Put> {
    for set in report.sets() {
        bucket.put_new(&path_of_set(&set.digest()), set.parquet()?)?;
    }
    let bytes = report.parquet()?;
    bucket.put_new(&report.path(), bytes)
}
