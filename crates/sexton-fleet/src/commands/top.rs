//! `fleet top`: sickest nodes, most frequent findings, how groups of nodes are, and what grows.

mod growth;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use anyhow::{Result, bail};
use serde_json::json;
use sexton_lake::column;
use sexton_model::text::escape;

use growth::Growth;

use super::compare::{jobs_line, rates};
use super::{LakeArgs, TimeArgs};
use crate::jobs::Rates;
use crate::lake::{self, Lake, Nodes};
use crate::show;

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// The column to group nodes by: image, zone, kernel, instance_type, label_team
    #[arg(long, default_value = "image")]
    by: String,
    /// Rows of each table
    #[arg(long, default_value_t = 10)]
    rows: usize,
    #[command(flatten)]
    lake: LakeArgs,
    #[command(flatten)]
    time: TimeArgs,
}

/// Nodes of one value of a column.
struct GroupOfNodes {
    value: String,
    n_nodes: usize,
    n_bad: usize,
}

/// What is shown.
struct Top<'a> {
    args: &'a TopArgs,
    lake: &'a Lake,
    nodes: &'a Nodes,
    n_bad: usize,
    /// Nodes, their severity, and how many findings they have.
    sickest: Vec<(usize, f64, usize)>,
    findings: Vec<(String, usize)>,
    groups: Vec<GroupOfNodes>,
    /// How jobs went on nodes with a finding, by its code.
    jobs: Vec<(String, Rates)>,
    growth: Growth,
}

pub(super) fn run(args: &TopArgs, out: &mut dyn Write) -> Result<u8> {
    let bucket = args.lake.bucket()?;
    let (lake, nodes) = lake::read(&bucket, args.time.since, args.time.now_us())?;
    let mut sickest = sickest(&nodes);
    let n_sick = sickest.len();
    sickest.truncate(args.rows);
    let mut top = Top {
        args,
        lake: &lake,
        nodes: &nodes,
        n_bad: nodes.serious_at.iter().flatten().count(),
        sickest,
        findings: findings(&nodes),
        groups: groups(&nodes, &args.by)?,
        jobs: Vec::new(),
        growth: Growth::of(&lake, args.rows)?,
    };
    top.findings.truncate(args.rows);
    top.groups.truncate(args.rows);
    top.jobs = top.rates();
    match args.lake.json {
        true => top.write_json(out)?,
        false => top.write_text(out)?,
    }
    Ok(u8::from(n_sick > 0))
}

/// Nodes with findings, sickest first.
fn sickest(nodes: &Nodes) -> Vec<(usize, f64, usize)> {
    let all = (0..nodes.names.len()).map(|node| (node, severity(nodes, node), 0));
    let mut sickest: Vec<(usize, f64, usize)> = all.collect();
    for change in &nodes.findings.changes {
        sickest[change.node as usize].2 += 1;
    }
    sickest.retain(|(_, severity, findings)| *severity > 0.0 || *findings > 0);
    sickest.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then(a.0.cmp(&b.0)));
    sickest
}

impl Top<'_> {
    /// Of the shown findings: a job counts where a node of it had the finding before the job ended.
    fn rates(&self) -> Vec<(String, Rates)> {
        let found = &self.nodes.findings;
        let rates = self.findings.iter().filter_map(|(code, _)| {
            let of_code = found
                .changes
                .iter()
                .filter(|change| *found.values[change.value as usize] == **code);
            let since: HashMap<u32, i64> =
                of_code.map(|change| (change.node, change.at_us)).collect();
            let had =
                |node: u32, ended: i64| Some(since.get(&node).is_some_and(|since| *since <= ended));
            Some((code.clone(), self.lake.jobs.rates(had)?))
        });
        let mut rates: Vec<(String, Rates)> = rates.collect();
        rates.sort_by(|(_, a), (_, b)| a.p.total_cmp(&b.p));
        rates
    }

    fn write_jobs(&self, out: &mut dyn Write) -> Result<()> {
        let jobs = &self.lake.jobs;
        if jobs.is_empty() {
            return Ok(());
        }
        let rate = jobs.rate();
        writeln!(
            out,
            "\n{} of {} jobs succeeded.",
            show::percent(rate.share()),
            show::count(rate.all())
        )?;
        for (code, rates) in &self.jobs {
            let with = format!("on nodes with {}", escape(code.as_bytes()));
            show::wrapped(out, "  ", &jobs_line(&with, "elsewhere", *rates))?;
        }
        Ok(())
    }

    fn write_json(&self, out: &mut dyn Write) -> Result<()> {
        let nodes = self.nodes;
        let sickest = self.sickest.iter().map(|(node, severity, findings)| {
            json!({ "node": nodes.names[*node], "severity_rank": severity, "findings": findings })
        });
        let findings = self.findings.iter();
        let findings = findings.map(|(code, n)| json!({ "code": code, "nodes": n }));
        let groups = self.groups.iter().map(|group| {
            let (n_nodes, n_bad) = (group.n_nodes, group.n_bad);
            json!({ "by": self.args.by, "value": group.value, "nodes": n_nodes, "bad": n_bad })
        });
        let jobs = self
            .jobs
            .iter()
            .map(|(code, of_code)| json!({ "code": code, "rates": rates(*of_code) }));
        let rate = self.lake.jobs.rate();
        let answer = json!({
            "schema": "sexton.top/1",
            "jobs": {
                "succeeded": rate.succeeded,
                "failed": rate.failed,
                "by_finding": jobs.collect::<Vec<_>>(),
            },
            "nodes": nodes.names.len(),
            "bad": self.n_bad,
            "reports": self.lake.claimed.n_reports,
            "sickest": sickest.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
            "groups": groups.collect::<Vec<_>>(),
            "growing": self.growth.json(&nodes.names),
            "spreading": self.growth.json_of_findings(nodes.names.len()),
            "problems": self.lake.problems.lines(),
        });
        serde_json::to_writer_pretty(&mut *out, &answer)?;
        writeln!(out)?;
        Ok(())
    }

    fn write_text(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(
            out,
            "{} of {} nodes have a serious finding ({} reports, last {} h).\n",
            show::count(self.n_bad as u64),
            show::count(self.nodes.names.len() as u64),
            show::count(self.lake.claimed.n_reports as u64),
            self.args.time.since
        )?;
        let rows = self.sickest.iter().map(|(node, severity, findings)| {
            let name = self.nodes.names[*node].clone();
            let severity = severity_name(*severity).to_owned();
            vec![name, severity, findings.to_string()]
        });
        let header = ["node", "severity", "findings"].map(String::from);
        show::table(out, &header, &rows.collect::<Vec<_>>())?;
        writeln!(out)?;
        let rows = self.findings.iter();
        let rows = rows.map(|(code, n)| vec![code.clone(), show::count(*n as u64)]);
        let header = ["finding", "nodes"].map(String::from);
        show::table(out, &header, &rows.collect::<Vec<_>>())?;
        writeln!(out)?;
        let rows = self.groups.iter().map(|group| {
            let share = group.n_bad as f64 / group.n_nodes.max(1) as f64;
            let (n_nodes, n_bad) = (group.n_nodes as u64, group.n_bad as u64);
            let value = group.value.clone();
            vec![
                value,
                show::count(n_nodes),
                show::count(n_bad),
                show::percent(share),
            ]
        });
        let header = [&*self.args.by, "nodes", "bad", "share"].map(String::from);
        match self.groups.is_empty() {
            true => writeln!(out, "No node reports {}.", escape(self.args.by.as_bytes()))?,
            false => show::table(out, &header, &rows.collect::<Vec<_>>())?,
        }
        self.growth.write(&self.nodes.names, out)?;
        self.write_jobs(out)?;
        show::problems(out, &self.lake.problems)?;
        Ok(())
    }
}

fn severity(nodes: &Nodes, node: usize) -> f64 {
    let ranks = nodes.numbers.get(column::SEVERITY_RANK);
    ranks.map_or(0.0, |ranks| ranks[node]).max(0.0)
}

fn severity_name(rank: f64) -> &'static str {
    match rank as u32 {
        0 => "none",
        1 => "note",
        2 => "warning",
        3 => "serious",
        _ => "critical",
    }
}

/// Codes, and on how many nodes they were found.
fn findings(nodes: &Nodes) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for change in &nodes.findings.changes {
        let code = &nodes.findings.values[change.value as usize];
        *counts.entry(code).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts
        .into_iter()
        .map(|(code, n)| (code.to_owned(), n))
        .collect();
    counts.sort_by_key(|(code, n)| (std::cmp::Reverse(*n), code.clone()));
    counts
}

fn groups(nodes: &Nodes, by: &str) -> Result<Vec<GroupOfNodes>> {
    let Some(attribute) = nodes.attributes.get(by) else {
        // What docs/fleet.md lists is known, even if no node has it: bare metal has no image.
        if column::ATTRIBUTES.contains(&by) {
            return Ok(Vec::new());
        }
        let known: Vec<&str> = nodes.attributes.keys().map(|name| &**name).collect();
        bail!("no column is called {by}; there are {}", known.join(", "));
    };
    let mut groups: Vec<GroupOfNodes> = attribute
        .values
        .iter()
        .map(|value| GroupOfNodes {
            value: value.to_string(),
            n_nodes: 0,
            n_bad: 0,
        })
        .collect();
    // A node counts where it was last.
    let mut changes = attribute.changes.iter().peekable();
    while let Some(change) = changes.next() {
        if changes.peek().is_some_and(|next| next.node == change.node) {
            continue;
        }
        let group = &mut groups[change.value as usize];
        group.n_nodes += 1;
        group.n_bad += usize::from(nodes.serious_at[change.node as usize].is_some());
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.n_bad), group.value.clone()));
    Ok(groups)
}
