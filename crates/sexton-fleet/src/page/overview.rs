//! What the page opens with: how much was read, and by what nodes can be chosen.

use serde_json::{Value, json};

use super::view::{Column, View};
use crate::lake::SERIOUS;

/// Values of a column that are offered.
const MAX_VALUES: usize = 100;

pub(super) fn answer(view: &View, failed: Option<String>) -> Value {
    let n_nodes = view.names().len() as u32;
    let is_bad: Vec<bool> = (0..n_nodes)
        .map(|node| view.hours.worst(node) >= SERIOUS)
        .collect();
    let columns = view.columns.iter().map(|(name, column)| {
        json!({ "name": name, "values": values(column, &is_bad), "distinct": column.values.len() })
    });
    let lake = view.lake();
    json!({
        "schema": "sexton.fleet-page/1",
        "version": env!("CARGO_PKG_VERSION"),
        "lake": view.url,
        "read_at": view.read_at_us,
        "not_read_since": failed,
        "hours": view.n_hours,
        "from": view.hours.from_us,
        "step": view.hours.step_us,
        "columns_of_time": view.hours.n_columns,
        "nodes": n_nodes,
        "bad": is_bad.iter().filter(|is_bad| **is_bad).count(),
        "reports": lake.claimed.n_reports,
        "columns": columns.collect::<Vec<_>>(),
        "codes": view.hours.codes,
        "problems": lake.problems.lines(),
    })
}

/// The most frequent values of a column: how many nodes have each, and how many of these are bad.
fn values(column: &Column, is_bad: &[bool]) -> Vec<Value> {
    let mut counts = vec![(0usize, 0usize); column.values.len()];
    for (node, value) in column.of_node.iter().enumerate() {
        if let Some((nodes, bad)) = counts.get_mut(*value as usize) {
            *nodes += 1;
            *bad += usize::from(is_bad[node]);
        }
    }
    let mut order: Vec<usize> = (0..counts.len()).filter(|at| counts[*at].0 > 0).collect();
    order.sort_by(|a, b| {
        let by_name = || column.values[*a].cmp(&column.values[*b]);
        counts[*b].0.cmp(&counts[*a].0).then_with(by_name)
    });
    order.truncate(MAX_VALUES);
    let value = |at: usize| {
        let (nodes, bad) = counts[at];
        json!({ "value": column.values[at], "nodes": nodes, "bad": bad })
    };
    order.into_iter().map(value).collect()
}
