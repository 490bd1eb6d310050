//! Causes over time: on how many nodes each finding was open, by column.

use anyhow::Result;
use serde_json::{Value, json};
use sexton_web::Asked;

use super::filter::chosen;
use super::view::View;
use crate::lake::NOT_SEEN;

/// What is known of a code.
struct Cause {
    code: usize,
    /// Nodes by column.
    by_column: Vec<u32>,
    /// Nodes that had it at all, and those on which nothing else caused it.
    n_nodes: usize,
    n_as_root: usize,
}

pub(super) fn answer(view: &View, asked: &Asked<'_>) -> Result<Value> {
    let chosen = chosen(view, asked)?;
    let mut is_chosen = vec![false; view.names().len()];
    let mut seen = vec![0u32; view.hours.n_columns];
    for node in &chosen {
        is_chosen[*node as usize] = true;
        for (column, cell) in view.hours.severity(*node).iter().enumerate() {
            seen[column] += u32::from(*cell != NOT_SEEN);
        }
    }
    let mut causes = causes(view, &is_chosen);
    causes.retain(|cause| cause.n_nodes > 0);
    causes.sort_by_key(|cause| std::cmp::Reverse((cause.n_as_root, cause.n_nodes)));
    let causes = causes.iter().map(|cause| {
        let code = &*view.hours.codes[cause.code];
        json!({
            "code": code,
            "title": sexton_analysis::rules::by_code(code).map(|rule| rule.title),
            "nodes": cause.n_nodes,
            "as_root": cause.n_as_root,
            "by_column": cause.by_column,
        })
    });
    Ok(json!({ "nodes": chosen.len(), "seen": seen, "causes": causes.collect::<Vec<_>>() }))
}

/// By code. What is open is sorted by code.
fn causes(view: &View, is_chosen: &[bool]) -> Vec<Cause> {
    /// A node had the finding, and had it with nothing that caused it.
    const HAD: u8 = 1;
    const AS_ROOT: u8 = 2;
    let mut causes = Vec::new();
    let mut had = vec![0u8; is_chosen.len()];
    for of_code in view.hours.open.chunk_by(|a, b| a.code == b.code) {
        let mut cause = Cause {
            code: of_code[0].code as usize,
            by_column: vec![0; view.hours.n_columns],
            n_nodes: 0,
            n_as_root: 0,
        };
        had.fill(0);
        for open in of_code.iter().filter(|open| is_chosen[open.node as usize]) {
            cause.by_column[open.column as usize] += 1;
            had[open.node as usize] |= HAD | if open.is_effect { 0 } else { AS_ROOT };
        }
        cause.n_nodes = had.iter().filter(|had| **had & HAD != 0).count();
        cause.n_as_root = had.iter().filter(|had| **had & AS_ROOT != 0).count();
        causes.push(cause);
    }
    causes
}
