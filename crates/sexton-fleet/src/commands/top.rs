//! `fleet top`: sickest nodes, most frequent findings, and how groups of nodes are.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, bail};
use serde_json::json;

use super::{LakeArgs, TimeArgs};
use crate::lake::{self, Nodes};
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

pub(super) fn run(args: &TopArgs, out: &mut dyn Write) -> Result<u8> {
    let bucket = args.lake.bucket()?;
    let (lake, nodes) = lake::read(&bucket, args.time.since)?;
    let mut sickest: Vec<(usize, f64, usize)> = (0..nodes.names.len())
        .map(|node| (node, severity(&nodes, node), 0))
        .collect();
    for change in &nodes.findings.changes {
        sickest[change.node as usize].2 += 1;
    }
    sickest.retain(|(_, severity, findings)| *severity > 0.0 || *findings > 0);
    let n_sick = sickest.len();
    sickest.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then(a.0.cmp(&b.0)));
    sickest.truncate(args.rows);
    let findings = findings(&nodes);
    let groups = groups(&nodes, &args.by)?;
    let n_bad = nodes.serious_at.iter().flatten().count();
    if args.lake.json {
        let answer = json!({
            "schema": "sexton.top/1",
            "nodes": nodes.names.len(),
            "bad": n_bad,
            "reports": lake.claimed.n_reports,
            "sickest": sickest.iter().map(|(node, severity, findings)| json!({
                "node": nodes.names[*node], "severity_rank": severity, "findings": findings,
            })).collect::<Vec<_>>(),
            "findings": findings.iter().take(args.rows).map(|(code, n)| json!({
                "code": code, "nodes": n,
            })).collect::<Vec<_>>(),
            "groups": groups.iter().take(args.rows).map(|group| json!({
                "by": args.by, "value": group.value, "nodes": group.n_nodes, "bad": group.n_bad,
            })).collect::<Vec<_>>(),
            "problems": lake.problems.lines(),
        });
        serde_json::to_writer_pretty(&mut *out, &answer)?;
        writeln!(out)?;
    } else {
        writeln!(
            out,
            "{} of {} nodes have a serious finding ({} reports, last {} h).\n",
            show::count(n_bad as u64),
            show::count(nodes.names.len() as u64),
            show::count(lake.claimed.n_reports as u64),
            args.time.since
        )?;
        let row = |(node, severity, findings): &(usize, f64, usize)| {
            let name = nodes.names[*node].clone();
            vec![
                name,
                severity_name(*severity).to_owned(),
                findings.to_string(),
            ]
        };
        let rows: Vec<_> = sickest.iter().map(row).collect();
        show::table(
            out,
            &["node", "severity", "findings"].map(String::from),
            &rows,
        )?;
        writeln!(out)?;
        let row = |(code, n): &(String, usize)| vec![code.clone(), show::count(*n as u64)];
        let rows: Vec<_> = findings.iter().take(args.rows).map(row).collect();
        show::table(out, &["finding", "nodes"].map(String::from), &rows)?;
        writeln!(out)?;
        let row = |group: &GroupOfNodes| {
            let share = 100.0 * group.n_bad as f64 / group.n_nodes.max(1) as f64;
            vec![
                group.value.clone(),
                show::count(group.n_nodes as u64),
                show::count(group.n_bad as u64),
                format!("{share:.1} %"),
            ]
        };
        let rows: Vec<_> = groups.iter().take(args.rows).map(row).collect();
        let header = [
            args.by.clone(),
            "nodes".into(),
            "bad".into(),
            "share".into(),
        ];
        show::table(out, &header, &rows)?;
        show::problems(out, &lake.problems)?;
    }
    Ok(u8::from(n_sick > 0))
}

fn severity(nodes: &Nodes, node: usize) -> f64 {
    let ranks = nodes.numbers.get(sexton_lake::column::SEVERITY_RANK);
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
