//! What grows, and what will be if it goes on.

use std::io::Write;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::growth::{Growing, Grown, Spreading, growing, spreading};
use crate::lake::{Hours, Lake};
use crate::show::{count, number, percent, wrapped};

/// What is further away is no forecast from days.
const MAX_HOURS_AHEAD: f64 = 14.0 * 24.0;

/// Nodes of a fact that are named in JSON.
const NAMED: usize = 100;

/// What grows.
pub(super) struct Growth {
    growing: Vec<Growing>,
    spreading: Vec<Spreading>,
}

impl Growth {
    pub(super) fn of(lake: &Lake, rows: usize) -> Result<Self> {
        let hours = Hours::of(lake).context("cannot read findings")?;
        let mut growth = Self {
            growing: growing(lake, &hours).context("cannot read facts")?,
            spreading: spreading(&hours, lake.claimed.names.len()),
        };
        growth.growing.truncate(rows);
        growth.spreading.truncate(rows);
        Ok(growth)
    }

    pub(super) fn write(&self, names: &[String], out: &mut dyn Write) -> Result<()> {
        if !self.growing.is_empty() {
            writeln!(out, "\nWhat grows")?;
        }
        for growing in &self.growing {
            wrapped(out, "  ", &line_of_fact(growing, names))?;
        }
        if !self.spreading.is_empty() {
            writeln!(out, "\nForecast")?;
        }
        for spreading in &self.spreading {
            wrapped(out, "  ", &line_of_finding(spreading, names.len()))?;
        }
        Ok(())
    }

    pub(super) fn json(&self, names: &[String]) -> Vec<Value> {
        let grown = |grown: &Grown| json!({ "node": names[grown.node as usize], "per_hour": grown.per_hour, "last": grown.last });
        let growing = self.growing.iter().map(|growing| {
            json!({
                "fact": growing.fact,
                "nodes": growing.nodes.len(),
                "nodes_known": growing.n_known,
                "median_per_hour": median_per_hour(&growing.nodes),
                "fastest": growing.nodes.iter().take(NAMED).map(grown).collect::<Vec<_>>(),
            })
        });
        growing.collect()
    }

    pub(super) fn json_of_findings(&self, n_nodes: usize) -> Vec<Value> {
        let spreading = self.spreading.iter().map(|spreading| {
            json!({
                "code": spreading.code,
                "share": spreading.share,
                "nodes_per_hour": spreading.share_per_hour * n_nodes as f64,
                "hours_to_half": spreading.hours_to_half,
            })
        });
        spreading.collect()
    }
}

/// Nodes are sorted by it.
fn median_per_hour(nodes: &[Grown]) -> f64 {
    nodes
        .get(nodes.len() / 2)
        .map_or(f64::NAN, |grown| grown.per_hour)
}

fn line_of_fact(growing: &Growing, names: &[String]) -> String {
    let Growing {
        fact,
        nodes,
        n_known,
    } = growing;
    let fastest = nodes.first().map_or(String::new(), |grown| {
        let hours = grown.last / grown.per_hour;
        let twice = match hours > 0.0 && hours <= MAX_HOURS_AHEAD {
            true => format!(", twice as much in {} at this rate", time(hours)),
            false => String::new(),
        };
        format!(
            "; most on {}: +{}/h, now {}{twice}",
            sexton_model::text::escape(names[grown.node as usize].as_bytes()),
            number(grown.per_hour),
            number(grown.last)
        )
    });
    format!(
        "{fact}: grows on {} of {} nodes, by {}/h (median){fastest}.",
        count(nodes.len() as u64),
        count(*n_known as u64),
        number(median_per_hour(nodes))
    )
}

fn line_of_finding(spreading: &Spreading, n_nodes: usize) -> String {
    let per_hour = spreading.share_per_hour * n_nodes as f64;
    let half = match spreading.hours_to_half {
        Some(hours) if hours <= MAX_HOURS_AHEAD => {
            format!("; on half of all nodes in {} at this rate", time(hours))
        }
        _ => String::new(),
    };
    format!(
        "{}: on {} of nodes that report, +{} nodes/h{half}.",
        sexton_model::text::escape(spreading.code.as_bytes()),
        percent(spreading.share),
        number(per_hour)
    )
}

/// `5 h`, `3 days`.
fn time(hours: f64) -> String {
    match hours {
        hours if hours < 1.0 => "less than an hour".to_owned(),
        hours if hours < 48.0 => format!("{hours:.0} h"),
        hours => format!("{:.0} days", hours / 24.0),
    }
}
