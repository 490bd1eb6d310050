//! The heat map: nodes by time. A row stands for one node, or for several that follow each other.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sexton_web::Asked;

use super::filter::{Group, groups};
use super::view::View;
use crate::lake::{NOT_SEEN, SERIOUS, signs};

/// More rows than any screen has.
const MAX_ROWS: usize = 2_000;

/// Nodes of a row that are named.
const NAMED: usize = 3;

pub(super) fn answer(view: &View, asked: &Asked<'_>) -> Result<Value> {
    let groups = groups(view, asked)?;
    let total: usize = groups.iter().map(|group| group.nodes.len()).sum();
    let from = number(asked, "from")?.unwrap_or(0).min(total);
    let to = number(asked, "to")?.unwrap_or(total).clamp(from, total);
    let wanted = number(asked, "rows")?.unwrap_or(400).clamp(1, MAX_ROWS);
    let mut rows = Vec::new();
    let mut named = Vec::new();
    let mut first = 0;
    for group in &groups {
        let end = first + group.nodes.len();
        named.push(of_group(view, group, first));
        let (cut_from, cut_to) = (from.max(first), to.min(end));
        if cut_from < cut_to {
            let nodes = &group.nodes[cut_from - first..cut_to - first];
            let n_rows = (wanted * nodes.len()).div_ceil((to - from).max(1));
            for (at, part) in parts(nodes, n_rows) {
                rows.push(row(view, cut_from + at, part));
            }
        }
        first = end;
    }
    Ok(json!({ "total": total, "from": from, "to": to, "groups": named, "rows": rows }))
}

fn number(asked: &Asked<'_>, name: &str) -> Result<Option<usize>> {
    let text = asked.one(name);
    text.map(|text| {
        text.parse()
            .with_context(|| format!("{name} is no number: {text:?}"))
    })
    .transpose()
}

fn of_group(view: &View, group: &Group, first: usize) -> Value {
    let bad = group
        .nodes
        .iter()
        .filter(|node| view.hours.worst(**node) >= SERIOUS);
    json!({ "value": group.value, "first": first, "nodes": group.nodes.len(), "bad": bad.count() })
}

/// Parts of nodes, at most this number and of nearly the same size, and where each begins.
fn parts(nodes: &[u32], n_parts: usize) -> impl Iterator<Item = (usize, &[u32])> {
    let n_parts = n_parts.clamp(1, nodes.len().max(1));
    let cut = move |part: usize| part * nodes.len() / n_parts;
    (0..n_parts).map(move |part| (cut(part), &nodes[cut(part)..cut(part + 1)]))
}

/// `cells` has a sign for each column: the worst severity of its nodes, `?` where one of them could not
/// see enough and none had a finding, `.` where none reported; `bad` says how many were serious or critical, where it is a row of several.
fn row(view: &View, first: usize, nodes: &[u32]) -> Value {
    let mut worst = vec![NOT_SEEN; view.hours.n_columns];
    let mut bad = vec![0u32; view.hours.n_columns];
    for node in nodes {
        for (column, cell) in view.hours.severity(*node).iter().enumerate() {
            worst[column] = worst[column].max(*cell);
            bad[column] += u32::from(*cell >= SERIOUS);
        }
    }
    let names = nodes
        .iter()
        .take(NAMED)
        .map(|node| &view.names()[*node as usize]);
    let mut row = json!({
        "first": first,
        "nodes": nodes.len(),
        "names": names.collect::<Vec<_>>(),
        "cells": signs(&worst),
    });
    if nodes.len() > 1 {
        row["bad"] = bad.into();
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_each_node_once() {
        let check = |n: u32, n_parts: usize, sizes: &[usize]| {
            let nodes: Vec<u32> = (0..n).collect();
            let parts: Vec<(usize, &[u32])> = parts(&nodes, n_parts).collect();
            let found: Vec<usize> = parts.iter().map(|(_, part)| part.len()).collect();
            assert_eq!(found, sizes);
            let all: Vec<u32> = parts
                .iter()
                .flat_map(|(_, part)| part.iter().copied())
                .collect();
            assert_eq!(all, nodes);
            assert!(
                parts
                    .iter()
                    .all(|(at, part)| part.first() == nodes.get(*at))
            );
        };
        check(7, 3, &[2, 2, 3]);
        check(2, 5, &[1, 1]);
        check(3, 1, &[3]);
    }
}
