//! `fleet compare`: what differs between bad and good nodes.

mod json;
mod text;

pub(super) use json::rates;
pub(super) use text::jobs_line;

use std::io::Write;

use anyhow::{Result, bail};

use super::{LakeArgs, TimeArgs};
use crate::compare::{Candidate, Comparison, Input, compare};
use crate::jobs::Rates;
use crate::lake::{self, AllSets, Lake, Nodes, Read, Sets, digests_of};
use crate::question::{Classes, Question};
use crate::sql;

#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Nodes are bad if this holds in any report: "nic_resets > 0"
    ///
    /// A condition of SQL on the columns of reports. Without it, a node is bad when it has a
    /// finding of severity serious or critical.
    #[arg(long, value_name = "EXPR")]
    bad: Option<String>,
    /// Nodes are good if this holds in any report and they are not bad: "zone = 'us-east-1a'"
    ///
    /// Without it, all nodes that are not bad are good.
    #[arg(long, value_name = "EXPR")]
    good: Option<String>,
    #[command(flatten)]
    lake: LakeArgs,
    #[command(flatten)]
    time: TimeArgs,
}

/// What is shown of a comparison.
struct Shown<'a> {
    input: &'a Input<'a>,
    question: &'a Question<'a>,
    answer: &'a Comparison,
    lake: &'a Lake,
    bad: &'a str,
    good: &'a str,
    hours: u64,
}

/// What is compared with what.
#[derive(Clone, Copy)]
struct Conditions<'a> {
    bad: Option<&'a str>,
    good: Option<&'a str>,
    hours: u64,
}

/// Something differs.
const DIFFERENT: u8 = 1;
/// Too few nodes to tell.
const TOO_FEW: u8 = 3;

pub(super) fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<u8> {
    let bucket = args.lake.bucket()?;
    let conditions = Conditions {
        bad: args.bad.as_deref(),
        good: args.good.as_deref(),
        hours: args.time.since,
    };
    let (mut lake, nodes) = lake::read(&bucket, args.time.since, args.time.now_us())?;
    let classes = classes(conditions, &lake, &nodes, bucket.runtime())?;
    let sets = AllSets::fetch(&bucket, &digests_of(&nodes), &mut lake.problems)?;
    let read = Read { lake, nodes, sets };
    answered(&read, &classes, conditions, |shown| {
        match args.lake.json {
            true => json::write(shown, out)?,
            false => text::write(shown, out)?,
        }
        Ok(match (shown.answer.is_empty(), shown.answer.too_few) {
            (false, _) => DIFFERENT,
            (true, Some(_)) => TOO_FEW,
            (true, None) => 0,
        })
    })
}

/// The comparison as JSON, of a bucket that was read before.
pub(crate) fn compared(
    read: &Read,
    bad: Option<&str>,
    good: Option<&str>,
    runtime: &tokio::runtime::Runtime,
    hours: u64,
) -> Result<serde_json::Value> {
    let conditions = Conditions { bad, good, hours };
    let classes = classes(conditions, &read.lake, &read.nodes, runtime)?;
    answered(read, &classes, conditions, |shown| Ok(json::value(shown)))
}

/// Compares, and hands what is to be shown to `show`.
fn answered<T>(
    read: &Read,
    classes: &Classes,
    conditions: Conditions<'_>,
    show: impl FnOnce(&Shown<'_>) -> Result<T>,
) -> Result<T> {
    let of = |name: &str| {
        let attribute = read.nodes.attributes.get(name);
        attribute.map_or_else(Sets::default, |attribute| read.sets.of(&attribute.values))
    };
    let unit_sets = of(sexton_lake::column::UNIT_SET);
    let software_sets = of(sexton_lake::column::SOFTWARE_SET);
    let question = Question::new(&read.nodes, classes, &unit_sets, &software_sets);
    let input = question.input();
    let answer = compare(&input);
    show(&Shown {
        input: &input,
        question: &question,
        answer: &answer,
        lake: &read.lake,
        bad: conditions.bad.unwrap_or(DEFAULT_BAD),
        good: conditions.good.unwrap_or(DEFAULT_GOOD),
        hours: conditions.hours,
    })
}

const DEFAULT_BAD: &str = "a finding of severity serious or critical";
const DEFAULT_GOOD: &str = "all other nodes";

fn classes(
    conditions: Conditions<'_>,
    lake: &Lake,
    nodes: &Nodes,
    runtime: &tokio::runtime::Runtime,
) -> Result<Classes> {
    let mut classes = match (conditions.bad, conditions.good) {
        (Some(bad), good) => sql::classes(lake, runtime, bad, good)?,
        (None, Some(good)) => {
            let mut classes = sql::classes(lake, runtime, "false", Some(good))?;
            classes.bad_at.clone_from(&nodes.serious_at);
            classes.asked_severity = true;
            classes
        }
        (None, None) => Classes {
            bad_at: nodes.serious_at.clone(),
            is_good: vec![true; nodes.names.len()],
            asked: Vec::new(),
            asked_severity: true,
        },
    };
    if conditions.bad.is_none() {
        classes.asked.push("severity_rank".to_owned());
    }
    let n_bad = classes.bad_at.iter().flatten().count();
    if let (0, Some(bad)) = (n_bad, conditions.bad) {
        bail!(
            "no node is bad by {bad:?} in the last {} h; widen --since or check the condition with fleet sql",
            conditions.hours
        );
    }
    Ok(classes)
}

impl Shown<'_> {
    /// How jobs went on bad nodes, and on good ones.
    fn jobs_by_class(&self) -> Option<Rates> {
        self.lake.jobs.rates(|node, _| self.question.is_bad(node))
    }

    /// How jobs went on nodes that have something, and on those that do not.
    fn jobs_by(&self, candidate: &Candidate) -> Option<Rates> {
        self.lake
            .jobs
            .rates(|node, _| self.question.has(candidate, node))
    }
}
