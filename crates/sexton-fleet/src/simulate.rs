//! A fleet with a planted incident and a known truth: for tests, and for trying it.
//!
//! Nodes have images, kernels, units, packages and labels that go together as in real fleets:
//! images are rolled out zone by zone, kernels come with instance types. Reports are missing,
//! clocks are off, and some nodes run an older sexton.

mod incident;
mod random;
mod reports;
mod world;

use anyhow::{Result, ensure};
use serde::Serialize;
use sexton_lake::{FOLDER_OF_SETS, Table, parquet_of};

use crate::bucket::Bucket;
use crate::parallel;
pub use incident::Incident;

/// The file beside the reports that says what was planted.
pub const TRUTH: &str = "truth.json";
/// Nodes of one file.
const CHUNK: usize = 4096;
/// Files that are made at once: what is in memory is bounded.
const AT_ONCE: usize = 8;
/// 2026-11-17, a Tuesday, at midnight: the same seed gives the same bytes.
const START_US: i64 = 1_794_873_600_000_000;
/// The largest fleet.
const MAX_NODES: usize = 5_000_000;
/// The longest time: a quarter.
const MAX_HOURS: usize = 24 * 92;

/// What was planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Truth {
    /// The name of the incident.
    pub incident: &'static str,
    /// The cause, as `fleet compare` calls it; two if only both together do it; none in a
    /// fleet without one.
    pub cause: Vec<String>,
    /// How many nodes are bad.
    pub n_bad: usize,
    /// How many of the bad nodes have the cause.
    pub n_bad_by_cause: usize,
    /// How many nodes have the cause.
    pub n_cause: usize,
    /// How many reports were written.
    pub n_reports: usize,
}

/// Makes a fleet.
pub fn simulate(
    bucket: &Bucket,
    (n_nodes, n_hours): (usize, usize),
    seed: u64,
    incident: Incident,
) -> Result<Truth> {
    ensure!(
        (1..=MAX_NODES).contains(&n_nodes) && (1..=MAX_HOURS).contains(&n_hours),
        "a fleet has 1 to {MAX_NODES} nodes and 1 to {MAX_HOURS} hours"
    );
    let plan = incident::plan(incident, n_nodes, n_hours, seed);
    let mut sets = Table::default();
    for set in plan.world.sets() {
        set.rows(&mut sets);
    }
    let path = format!("{FOLDER_OF_SETS}/part-{seed:016x}.parquet");
    bucket.put_over(&path, parquet_of(sets)?)?;
    let chunks: Vec<std::ops::Range<usize>> = (0..n_nodes)
        .step_by(CHUNK)
        .map(|start| start..n_nodes.min(start + CHUNK))
        .collect();
    let mut n_reports = 0;
    for (batch, chunks) in chunks.chunks(AT_ONCE).enumerate() {
        let written = parallel::map(chunks, |nodes| reports::of(&plan, nodes.clone()));
        for (at, days) in written.into_iter().enumerate() {
            for day in days? {
                n_reports += day.n_reports;
                let part = batch * AT_ONCE + at;
                let path = format!("day={}/part-{seed:016x}-{part:05}.parquet", day.day);
                bucket.put_over(&path, day.bytes)?;
            }
        }
    }
    let truth = plan.truth(n_reports);
    bucket.put_over(TRUTH, serde_json::to_vec_pretty(&truth)?)?;
    Ok(truth)
}
