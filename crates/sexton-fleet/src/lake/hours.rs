//! Nodes by time: how bad each was, hour by hour, and which findings were open.

use std::sync::Arc;

use ahash::AHashMap;
use sexton_lake::{LakeError, TextColumn, column, hour_of};

use super::{Group, Lake, NO_NODE};

const US_PER_HOUR: i64 = 3_600_000_000;

/// A longer time has columns of more hours.
const MAX_COLUMNS: i64 = 336;

/// How a node was in the time of a column; more is worse. It did not report.
pub const NOT_SEEN: u8 = 0;

/// It reported, and had no finding.
const NO_FINDING: u8 = 1;

/// It reported, and could not see enough to judge: that is no health.
const BLIND: u8 = 2;

/// It had a finding, and from here on a serious one: it is bad.
pub const SERIOUS: u8 = of_rank(3);

/// A sign for each of these: severities are their ranks.
const SIGNS: [char; 7] = ['.', '0', '?', '1', '2', '3', '4'];

/// A severity: 1 note, 2 warning, 3 serious, 4 critical.
pub const fn of_rank(rank: u8) -> u8 {
    BLIND + rank
}

/// A sign for each column.
pub fn signs(cells: &[u8]) -> String {
    let signs = cells.iter().map(|cell| SIGNS.get(usize::from(*cell)));
    signs.map(|sign| sign.copied().unwrap_or('?')).collect()
}

/// A finding was open on a node in the time of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Open {
    /// The number of its code.
    pub code: u32,
    /// The column of time.
    pub column: u32,
    /// The node.
    pub node: u32,
    /// Whether another finding causes it. Sorts after one that nothing causes.
    pub is_effect: bool,
}

/// Nodes by columns of time.
pub struct Hours {
    /// Where the first column begins: a full hour, as reports are.
    pub from_us: i64,
    /// How long a column is.
    pub step_us: i64,
    /// How many columns there are.
    pub n_columns: usize,
    /// By node, then by column.
    severity: Vec<u8>,
    /// The codes of findings.
    pub codes: Vec<Arc<str>>,
    /// Each code, column and node once, in this order.
    pub open: Vec<Open>,
}

impl Hours {
    /// Of a lake that was read.
    pub fn of(lake: &Lake) -> Result<Self, LakeError> {
        let from_us = hour_of(lake.window.from_us);
        let span_us = (lake.window.to_us - from_us).max(US_PER_HOUR);
        let n_hours = (span_us + US_PER_HOUR - 1) / US_PER_HOUR;
        let step_us = US_PER_HOUR * ((n_hours + MAX_COLUMNS - 1) / MAX_COLUMNS);
        // At most MAX_COLUMNS.
        let n_columns = ((span_us + step_us - 1) / step_us) as usize;
        let mut hours = Self {
            from_us,
            step_us,
            n_columns,
            severity: vec![NOT_SEEN; lake.claimed.names.len() * n_columns],
            codes: Vec::new(),
            open: Vec::new(),
        };
        hours.take_rows(lake)?;
        Ok(hours)
    }

    /// How bad a node was, by column.
    pub fn severity(&self, node: u32) -> &[u8] {
        let first = node as usize * self.n_columns;
        &self.severity[first..first + self.n_columns]
    }

    /// The worst that a node was.
    pub fn worst(&self, node: u32) -> u8 {
        let cells = self.severity(node).iter().copied();
        cells.max().unwrap_or(NOT_SEEN)
    }

    /// The column of a time.
    pub fn column_of(&self, at_us: i64) -> Option<usize> {
        let column = usize::try_from((at_us - self.from_us).div_euclid(self.step_us)).ok()?;
        (column < self.n_columns).then_some(column)
    }

    fn take_rows(&mut self, lake: &Lake) -> Result<(), LakeError> {
        let mut severity = std::mem::take(&mut self.severity);
        let mut codes = Codes::default();
        let mut open = Vec::new();
        for group in &lake.claimed.groups {
            let ranks = group.file.numbers(group.group, column::SEVERITY_RANK)?;
            let states = group.file.texts(group.group, column::STATE)?;
            let told = Told::of(group, &mut codes)?;
            for (row, node) in group.nodes.iter().enumerate() {
                let column = self.column_of(group.at_us[row]);
                let (true, Some(column)) = (*node != NO_NODE, column) else {
                    continue;
                };
                let cell = &mut severity[*node as usize * self.n_columns + column];
                let is_blind = group.is_report[row] && states.get(row) == Some(BLIND_STATE);
                *cell = (*cell).max(cell_of(ranks[row], is_blind));
                if let Some((code, is_effect)) = told.finding(group, row) {
                    open.push(Open {
                        code,
                        column: column as u32,
                        node: *node,
                        is_effect,
                    });
                }
            }
        }
        open.sort_unstable();
        // The first of several is the one that nothing causes, if there is one.
        open.dedup_by_key(|open| (open.code, open.column, open.node));
        self.severity = severity;
        self.codes = codes.all;
        self.open = open;
        Ok(())
    }
}

/// The state of a report that could not see enough.
const BLIND_STATE: &str = "blind";

/// What a row says. Without a severity, nothing is known.
fn cell_of(rank: f64, is_blind: bool) -> u8 {
    match rank {
        rank if rank.is_nan() => BLIND,
        rank if rank >= 1.0 => of_rank(rank.min(4.0) as u8),
        _ if is_blind => BLIND,
        _ => NO_FINDING,
    }
}

/// Codes of findings, numbered.
#[derive(Default)]
struct Codes {
    all: Vec<Arc<str>>,
    by_text: AHashMap<Arc<str>, u32>,
}

/// The codes of a row group, and what causes them.
struct Told {
    codes: TextColumn,
    numbers: Vec<u32>,
    caused_by: TextColumn,
}

impl Told {
    fn of(group: &Group, codes: &mut Codes) -> Result<Self, LakeError> {
        let of_group = group.file.texts(group.group, column::CODE)?;
        let numbers = of_group.values.iter().map(|code| {
            *codes.by_text.entry(code.clone()).or_insert_with(|| {
                codes.all.push(code.clone());
                (codes.all.len() - 1) as u32
            })
        });
        Ok(Self {
            numbers: numbers.collect(),
            codes: of_group,
            caused_by: group.file.texts(group.group, column::CAUSED_BY)?,
        })
    }

    /// The code of a finding, and whether another finding causes it.
    fn finding(&self, group: &Group, row: usize) -> Option<(u32, bool)> {
        let code = self.numbers.get(self.codes.ids[row] as usize)?;
        let is_effect = self
            .caused_by
            .get(row)
            .is_some_and(|cause| !cause.is_empty());
        (!group.is_report[row]).then_some((*code, is_effect))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_not_healthy() {
        let cells = [
            NOT_SEEN,
            cell_of(0.0, false),
            cell_of(0.0, true),
            cell_of(f64::NAN, false),
            cell_of(1.0, true),
            cell_of(3.0, false),
            cell_of(9.0, false),
            cell_of(-1.0, false),
        ];
        assert_eq!(signs(&cells), ".0??1340");
        // Of several nodes, one that is blind stands for those without a finding.
        assert!(cell_of(0.0, true) > cell_of(0.0, false));
        assert!(cell_of(3.0, false) >= SERIOUS && cell_of(2.0, false) < SERIOUS);
    }
}
