//! Which nodes are shown, and in which order.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use sexton_web::Asked;

use super::view::{Column, NONE, View};
use crate::lake::{SERIOUS, of_rank};

/// Groups that are named; nodes of rarer values are together.
const MAX_GROUPS: usize = 40;

/// What nodes of rarer values are called, and those without a value.
const OTHERS: &str = "others";
const UNKNOWN: &str = "unknown";

/// Nodes that follow each other and have a value in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// The value; none if nodes are not grouped.
    pub(super) value: Option<String>,
    pub(super) nodes: Vec<u32>,
}

/// The nodes that are asked for, sickest first in each group.
pub(super) fn groups(view: &View, asked: &Asked<'_>) -> Result<Vec<Group>> {
    let mut nodes = chosen(view, asked)?;
    match asked.one("sort").unwrap_or("severity") {
        "severity" => nodes.sort_by_cached_key(|node| sickness(view, *node)),
        "since" => nodes.sort_by_cached_key(|node| (began(view, *node), *node)),
        "name" => {}
        other => bail!("cannot sort by {other:?}: severity, since or name"),
    }
    let Some(by) = asked.one("by").filter(|by| !by.is_empty()) else {
        return Ok(vec![Group { value: None, nodes }]);
    };
    Ok(grouped(column(view, by)?, nodes))
}

/// The nodes that are asked for, by their name.
pub(super) fn chosen(view: &View, asked: &Asked<'_>) -> Result<Vec<u32>> {
    let mut is_chosen = vec![true; view.names().len()];
    let mut keep = |is_kept: &dyn Fn(usize) -> bool| {
        for (node, is_chosen) in is_chosen.iter_mut().enumerate() {
            *is_chosen = *is_chosen && is_kept(node);
        }
    };
    for condition in asked.all("where") {
        let (name, value) = condition
            .split_once('=')
            .with_context(|| format!("{condition:?} names no value: write zone=us-east-1a"))?;
        let column = column(view, name)?;
        let wanted = column.values.iter().position(|known| **known == *value);
        let wanted = wanted.map(|at| at as u32);
        keep(&|node| Some(column.of_node[node]) == wanted);
    }
    if let Some(part) = asked.one("name").filter(|part| !part.is_empty()) {
        keep(&|node| view.names()[node].contains(part));
    }
    if let Some(least) = asked.one("severity").filter(|least| !least.is_empty()) {
        let least: u8 = least
            .parse()
            .ok()
            .filter(|least| *least <= 4)
            .with_context(|| format!("{least:?} is no severity: 0 to 4"))?;
        keep(&|node| least == 0 || view.hours.worst(node as u32) >= of_rank(least));
    }
    if let Some(code) = asked.one("code").filter(|code| !code.is_empty()) {
        let number = view.hours.codes.iter().position(|known| **known == *code);
        let mut has = vec![false; view.names().len()];
        for open in view
            .hours
            .open
            .iter()
            .filter(|open| Some(open.code as usize) == number)
        {
            has[open.node as usize] = true;
        }
        keep(&|node| has[node]);
    }
    let nodes = is_chosen
        .iter()
        .enumerate()
        .filter(|(_, is_chosen)| **is_chosen);
    Ok(nodes.map(|(node, _)| node as u32).collect())
}

fn column<'a>(view: &'a View, name: &str) -> Result<&'a Column> {
    let known = || view.columns.keys().map(|name| &**name).collect::<Vec<_>>();
    view.columns
        .get(name)
        .with_context(|| format!("no report has a column {name:?}: {}", known().join(", ")))
}

/// Worst first; of those the ones that were so for the longest, and since the longest time.
fn sickness(view: &View, node: u32) -> (std::cmp::Reverse<(u8, usize)>, usize, u32) {
    let worst = view.hours.worst(node);
    let is_worst = |cell: &&u8| **cell == worst;
    let n_worst = view.hours.severity(node).iter().filter(is_worst).count();
    (std::cmp::Reverse((worst, n_worst)), began(view, node), node)
}

/// The first column in which a node was bad.
fn began(view: &View, node: u32) -> usize {
    let mut cells = view.hours.severity(node).iter();
    cells
        .position(|cell| *cell >= SERIOUS)
        .unwrap_or(usize::MAX)
}

/// Groups by the order of their values, each in the order in which its nodes came.
fn grouped(column: &Column, nodes: Vec<u32>) -> Vec<Group> {
    let mut n_nodes = vec![0usize; column.values.len()];
    for node in &nodes {
        if let Some(n) = n_nodes.get_mut(column.of_node[*node as usize] as usize) {
            *n += 1;
        }
    }
    let mut frequent: Vec<usize> = (0..n_nodes.len()).filter(|at| n_nodes[*at] > 0).collect();
    frequent.sort_by_key(|at| std::cmp::Reverse(n_nodes[*at]));
    frequent.truncate(MAX_GROUPS);
    let mut by_value: BTreeMap<(u8, &str), Vec<u32>> = BTreeMap::new();
    for node in nodes {
        let value = column.of_node[node as usize];
        let group = match value {
            NONE => (2, UNKNOWN),
            value if frequent.contains(&(value as usize)) => (0, &*column.values[value as usize]),
            _ => (1, OTHERS),
        };
        by_value.entry(group).or_default().push(node);
    }
    let groups = by_value.into_iter().map(|((_, value), nodes)| Group {
        value: Some(value.to_owned()),
        nodes,
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_in_the_order_of_values_and_the_unknown_comes_last() {
        let column = Column {
            values: vec!["b".into(), "a".into()],
            of_node: vec![0, 1, NONE, 0],
        };
        let groups = grouped(&column, vec![3, 2, 1, 0]);
        let found: Vec<(&str, &[u32])> = groups
            .iter()
            .map(|group| (group.value.as_deref().unwrap(), &*group.nodes))
            .collect();
        assert_eq!(
            found,
            [("a", &[1][..]), ("b", &[3, 0][..]), (UNKNOWN, &[2][..])]
        );
    }
}
