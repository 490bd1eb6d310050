//! Jobs in SQL: a table of their own, and columns of the reports in whose time they ended.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use datafusion::arrow::array::{
    ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::MemTable;

use super::UTC;
use crate::jobs::{Jobs, Outcome, RanJob, Rate, column};
use crate::lake::{Group, JOBS_FAILED, Lake, NO_NODE};

/// A row for each job and node.
pub(super) fn table_of_jobs(jobs: &Jobs) -> Result<MemTable> {
    let rows: Vec<(&RanJob, &Arc<str>)> = jobs
        .all
        .iter()
        .flat_map(|job| job.nodes.iter().map(move |node| (job, node)))
        .collect();
    let text = |of: fn(&RanJob) -> Option<&str>| -> ArrayRef {
        Arc::new(rows.iter().map(|(job, _)| of(job)).collect::<StringArray>())
    };
    let time = |of: fn(&RanJob) -> Option<i64>| -> ArrayRef {
        let times: TimestampMicrosecondArray = rows.iter().map(|(job, _)| of(job)).collect();
        Arc::new(times.with_timezone(UTC))
    };
    let exit_codes = rows
        .iter()
        .map(|(job, _)| Some(job.exit_code).filter(|code| !code.is_nan()));
    let nodes = rows.iter().map(|(_, node)| Some(&***node));
    let columns: Vec<(&str, ArrayRef)> = vec![
        (column::SOURCE, text(|job| Some(&job.source))),
        (column::JOB, text(|job| Some(&job.id))),
        (column::NAME, text(|job| job.name.as_deref())),
        (column::USER, text(|job| job.user.as_deref())),
        (column::OUTCOME, text(|job| Some(job.outcome.name()))),
        (column::REASON, text(|job| job.reason.as_deref())),
        (
            column::EXIT_CODE,
            Arc::new(exit_codes.collect::<Float64Array>()),
        ),
        (column::STARTED, time(|job| job.started_us)),
        (column::ENDED, time(|job| Some(job.ended_us))),
        (column::NODE, Arc::new(nodes.collect::<StringArray>())),
    ];
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays)?;
    Ok(MemTable::try_new(schema, vec![vec![batch]])?)
}

/// Of each node and report, the jobs that ended in its time. A node that died wrote no report of that
/// hour: its jobs count in its last report before, or in its first if there is none.
pub(super) struct JobsOfReports(HashMap<(u32, i64), Rate>);

impl JobsOfReports {
    pub(super) fn of(lake: &Lake) -> Self {
        let mut rates: HashMap<(u32, i64), Rate> = HashMap::new();
        if lake.jobs.is_empty() {
            return Self(rates);
        }
        let times = times_of_reports(lake);
        for job in lake
            .jobs
            .all
            .iter()
            .filter(|job| job.outcome != Outcome::Stopped)
        {
            for node in &job.numbers {
                let times = times.get(node).map(Vec::as_slice).unwrap_or_default();
                let after = times.partition_point(|at| *at <= job.ended_us);
                if let Some(at) = times.get(after.saturating_sub(1)) {
                    rates.entry((*node, *at)).or_default().add(job.outcome);
                }
            }
        }
        Self(rates)
    }

    /// A number of a row; none where no job ended.
    pub(super) fn number(&self, name: &str, group: &Group, row: usize) -> Option<f64> {
        let rate = self.0.get(&(group.nodes[row], group.at_us[row]))?;
        Some(match name {
            JOBS_FAILED => rate.failed as f64,
            _ => rate.succeeded as f64,
        })
    }
}

/// When each node reported, in the order of time.
fn times_of_reports(lake: &Lake) -> HashMap<u32, Vec<i64>> {
    let mut times: HashMap<u32, Vec<i64>> = HashMap::new();
    for group in &lake.claimed.groups {
        let rows = group.nodes.iter().zip(&group.at_us).zip(&group.is_report);
        for ((node, at), is_report) in rows {
            if *node != NO_NODE && *is_report {
                times.entry(*node).or_default().push(*at);
            }
        }
    }
    times.values_mut().for_each(|times| times.sort_unstable());
    times
}
