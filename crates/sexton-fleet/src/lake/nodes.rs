//! Collapses reports to nodes, straight from the columns, on all cores.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ahash::AHashMap;
use sexton_lake::{LakeError, TextColumn, column};
use sexton_model::fact::{self, FactKind};

use super::claims::{Claimed, Group, NO_NODE};
use crate::jobs::{Jobs, Rate};
use crate::parallel;

/// From when a node had which value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The node.
    pub node: u32,
    /// When.
    pub at_us: i64,
    /// The number of the value.
    pub value: u32,
}

/// A column of texts: what each node had, and since when.
#[derive(Debug, Clone, Default)]
pub struct Attribute {
    /// The values.
    pub values: Vec<Arc<str>>,
    /// What nodes had, by node and time; only where it changed.
    pub changes: Vec<Change>,
}

/// All nodes of a time.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Their names.
    pub names: Vec<String>,
    /// Columns of texts, by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// Columns of numbers, by name: one number for each node, `NaN` if there is none.
    pub numbers: BTreeMap<String, Vec<f64>>,
    /// Findings, by their code; the value is the code, the time is since when.
    pub findings: Attribute,
    /// The gravest severity of each finding's code and node: pairs of change and rank.
    pub graver: AHashMap<(u32, u32), f64>,
    /// When each node first had a serious finding.
    pub serious_at: Vec<Option<i64>>,
    /// The first report of each node.
    pub first_at: Vec<i64>,
}

/// How many jobs of a node succeeded, as a column.
pub const JOBS_SUCCEEDED: &str = "jobs_succeeded";
/// How many failed.
pub const JOBS_FAILED: &str = "jobs_failed";

impl Nodes {
    /// Takes how jobs went as numbers of nodes.
    pub fn take_jobs(&mut self, jobs: &Jobs) {
        if jobs.is_empty() {
            return;
        }
        let rates = jobs.of_nodes(self.names.len());
        let numbers = |number: fn(Rate) -> u64| -> Vec<f64> {
            let numbers = rates
                .iter()
                .map(|rate| rate.map_or(f64::NAN, |rate| number(rate) as f64));
            numbers.collect()
        };
        let of = [
            (JOBS_SUCCEEDED, numbers(|rate| rate.succeeded)),
            (JOBS_FAILED, numbers(|rate| rate.failed)),
        ];
        self.numbers
            .extend(of.map(|(name, numbers)| (name.to_owned(), numbers)));
    }
}

/// A severity from which on a node is bad.
const SERIOUS: f64 = 3.0;

/// A file that proved to be damaged when its columns were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Its path.
    pub path: String,
    /// What is wrong.
    pub why: String,
}

impl Broken {
    fn of(group: &Group) -> impl Fn(LakeError) -> Self + '_ {
        |error| Self {
            path: group.path.to_string(),
            why: error.to_string(),
        }
    }
}

/// Collapses.
pub fn collapse(claimed: &Claimed) -> Result<Nodes, Broken> {
    let columns = claimed.groups.iter().flat_map(|group| {
        let texts = group.file.text_columns().map(|name| (name, false));
        texts.chain(group.file.number_columns().map(|name| (name, true)))
    });
    let mut columns: Vec<(String, bool)> = columns
        .map(|(name, is_number)| (name.to_owned(), is_number))
        .filter(|(name, _)| !is_of_findings(name))
        .collect();
    columns.sort();
    columns.dedup();
    let n_nodes = claimed.names.len();
    let collapsed = parallel::map(&columns, |(name, is_number)| match is_number {
        true => numbers_of(claimed, name, n_nodes).map(Collapsed::Numbers),
        false => attribute_of(claimed, name, n_nodes).map(Collapsed::Attribute),
    });
    let mut nodes = Nodes {
        names: claimed.names.clone(),
        serious_at: vec![None; n_nodes],
        first_at: vec![i64::MAX; n_nodes],
        ..Nodes::default()
    };
    for ((name, _), collapsed) in columns.into_iter().zip(collapsed) {
        match collapsed? {
            Collapsed::Numbers(numbers) => {
                nodes.numbers.insert(name, numbers);
            }
            Collapsed::Attribute(attribute) => {
                nodes.attributes.insert(name, attribute);
            }
        }
    }
    first_reports(claimed, &mut nodes);
    findings(claimed, &mut nodes)?;
    Ok(nodes)
}

enum Collapsed {
    Numbers(Vec<f64>),
    Attribute(Attribute),
}

/// Columns that are read apart, or say nothing of a node.
fn is_of_findings(name: &str) -> bool {
    let texts = column::OTHER_TEXT.contains(&name)
        && !matches!(name, column::UNIT_SET | column::SOFTWARE_SET);
    texts || matches!(name, column::SCHEMA | column::CONFIDENCE)
}

fn first_reports(claimed: &Claimed, nodes: &mut Nodes) {
    for group in &claimed.groups {
        for (row, node) in group.nodes.iter().enumerate() {
            if *node != NO_NODE && group.is_report[row] {
                let first = &mut nodes.first_at[*node as usize];
                *first = (*first).min(group.at_us[row]);
            }
        }
    }
}

/// How the reports of a node become one number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    Sum,
    Mean,
    Max,
}

impl Fold {
    fn of(name: &str) -> Self {
        let kinds: HashMap<&str, FactKind> =
            fact::all().map(|fact| (fact.name, fact.kind)).collect();
        match kinds.get(name) {
            Some(FactKind::Counter | FactKind::Event) => Self::Sum,
            Some(FactKind::Gauge) => Self::Mean,
            None if name.ends_with("_max") || name == column::SEVERITY_RANK => Self::Max,
            None if name == column::WATCHED_SECONDS => Self::Sum,
            None => Self::Mean,
        }
    }
}

fn numbers_of(claimed: &Claimed, name: &str, n_nodes: usize) -> Result<Vec<f64>, Broken> {
    let fold = Fold::of(name);
    let mut folded = vec![f64::NAN; n_nodes];
    let mut counts = match fold {
        Fold::Mean => vec![0u32; n_nodes],
        _ => Vec::new(),
    };
    for group in &claimed.groups {
        if !group.file.number_columns().any(|known| known == name) {
            continue;
        }
        let numbers = group.file.numbers(group.group, name);
        let numbers = numbers.map_err(Broken::of(group))?;
        for (row, number) in numbers.into_iter().enumerate() {
            let node = group.nodes[row];
            if node == NO_NODE || number.is_nan() || !group.is_report[row] {
                continue;
            }
            let node = node as usize;
            let known = &mut folded[node];
            *known = match (known.is_nan(), fold) {
                (true, _) => number,
                (false, Fold::Max) => known.max(number),
                (false, _) => *known + number,
            };
            if fold == Fold::Mean {
                counts[node] += 1;
            }
        }
    }
    for (number, count) in folded.iter_mut().zip(counts) {
        *number /= f64::from(count.max(1));
    }
    Ok(folded)
}

/// Texts of several dictionaries, as one.
#[derive(Default)]
struct Interner {
    values: Vec<Arc<str>>,
    by_text: AHashMap<Arc<str>, u32>,
}

impl Interner {
    fn id(&mut self, text: &Arc<str>) -> u32 {
        *self.by_text.entry(text.clone()).or_insert_with(|| {
            self.values.push(text.clone());
            (self.values.len() - 1) as u32
        })
    }
}

fn attribute_of(claimed: &Claimed, name: &str, n_nodes: usize) -> Result<Attribute, Broken> {
    let mut interner = Interner::default();
    let mut runs = Runs::of(n_nodes);
    for group in &claimed.groups {
        if !group.file.text_columns().any(|known| known == name) {
            continue;
        }
        let texts = group.file.texts(group.group, name);
        let texts = texts.map_err(Broken::of(group))?;
        let ids: Vec<u32> = texts.values.iter().map(|text| interner.id(text)).collect();
        for (row, id) in texts.ids.iter().enumerate() {
            let node = group.nodes[row];
            if node == NO_NODE || *id == TextColumn::NONE || !group.is_report[row] {
                continue;
            }
            runs.add(Change {
                node,
                at_us: group.at_us[row],
                value: ids[*id as usize],
            });
        }
    }
    Ok(Attribute {
        values: interner.values,
        changes: runs.changes(),
    })
}

/// Changes of values, in whatever order the rows come. Of rows of a node that follow each other with the
/// same value, only the first and the last are kept: another file may have a value of a time between.
struct Runs {
    ends: Vec<Change>,
    /// Of each node the first and the last row of its newest run.
    open: Vec<Option<(Change, Change)>>,
}

impl Runs {
    fn of(n_nodes: usize) -> Self {
        Self {
            ends: Vec::new(),
            open: vec![None; n_nodes],
        }
    }

    fn add(&mut self, row: Change) {
        let open = &mut self.open[row.node as usize];
        match open {
            Some((_, last)) if last.value == row.value && last.at_us <= row.at_us => *last = row,
            _ => {
                self.ends
                    .extend(open.take().into_iter().flat_map(<[Change; 2]>::from));
                *open = Some((row, row));
            }
        }
    }

    fn changes(self) -> Vec<Change> {
        let Self { mut ends, open } = self;
        let open = open.into_iter().flatten();
        ends.extend(open.flat_map(<[Change; 2]>::from));
        ends.sort_unstable();
        ends.dedup_by(|next, first| next.node == first.node && next.value == first.value);
        ends
    }
}

fn findings(claimed: &Claimed, nodes: &mut Nodes) -> Result<(), Broken> {
    let mut interner = Interner::default();
    // Since when each node has each finding, and how grave that was.
    let mut found: AHashMap<(u32, u32), (i64, f64)> = AHashMap::new();
    for group in &claimed.groups {
        let (file, at) = (&group.file, group.group);
        let broken = Broken::of(group);
        let ranks = file.numbers(at, column::SEVERITY_RANK).map_err(&broken)?;
        serious_reports(group, &ranks, nodes);
        if group.is_report.iter().all(|is_report| *is_report) {
            continue;
        }
        let codes = file.texts(at, column::CODE).map_err(&broken)?;
        let since = file.times(at, column::SINCE).map_err(&broken)?;
        let ids: Vec<u32> = codes.values.iter().map(|code| interner.id(code)).collect();
        for (row, node) in group.nodes.iter().enumerate() {
            let value = ids.get(codes.ids[row] as usize).copied();
            let (false, Some(value)) = (group.is_report[row] || *node == NO_NODE, value) else {
                continue;
            };
            let at_us = since[row].map_or(group.at_us[row], |at| at.min(group.at_us[row]));
            let known = found.entry((*node, value)).or_insert((at_us, 0.0));
            *known = (known.0.min(at_us), known.1.max(ranks[row]));
            if ranks[row] >= SERIOUS {
                let serious = &mut nodes.serious_at[*node as usize];
                *serious = Some(serious.map_or(at_us, |known| known.min(at_us)));
            }
        }
    }
    let changes = found.iter().map(|((node, value), (at_us, _))| Change {
        node: *node,
        at_us: *at_us,
        value: *value,
    });
    let mut changes: Vec<Change> = changes.collect();
    changes.sort_unstable();
    let graver = found.into_iter().map(|(key, (_, rank))| (key, rank));
    nodes.graver = graver.collect();
    nodes.findings = Attribute {
        values: interner.values,
        changes,
    };
    Ok(())
}

/// Reports that say themselves that a finding is serious.
fn serious_reports(group: &Group, ranks: &[f64], nodes: &mut Nodes) {
    for (row, node) in group.nodes.iter().enumerate() {
        if *node != NO_NODE && group.is_report[row] && ranks[row] >= SERIOUS {
            let serious = &mut nodes.serious_at[*node as usize];
            let at = group.at_us[row];
            *serious = Some(serious.map_or(at, |known| known.min(at)));
        }
    }
}

/// The digests of sets that reports name.
pub fn digests_of(nodes: &Nodes) -> Vec<&Arc<str>> {
    let names = [column::UNIT_SET, column::SOFTWARE_SET];
    let attributes = names
        .into_iter()
        .filter_map(|name| nodes.attributes.get(name));
    attributes.flat_map(|attribute| &attribute.values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_in_the_order_of_time() {
        let check = |rows: &[(u32, i64, u32)], expected: &[(u32, i64, u32)]| {
            let mut runs = Runs::of(2);
            for (node, at_us, value) in rows.iter().copied() {
                runs.add(Change { node, at_us, value });
            }
            let changes = runs.changes();
            let changes = changes.iter();
            let changes = changes.map(|change| (change.node, change.at_us, change.value));
            assert_eq!(changes.collect::<Vec<_>>(), expected);
        };
        check(&[(0, 1, 7), (0, 2, 7), (0, 3, 8)], &[(0, 1, 7), (0, 3, 8)]);
        // Of another file, a time between.
        check(
            &[(0, 1, 7), (1, 1, 8), (0, 5, 7), (0, 3, 8), (1, 2, 8)],
            &[(0, 1, 7), (0, 3, 8), (0, 5, 7), (1, 1, 8)],
        );
        check(&[(0, 5, 7), (0, 1, 7), (0, 3, 7)], &[(0, 1, 7)]);
        check(&[], &[]);
    }
}
