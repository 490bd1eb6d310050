//! A node's report of an hour, and its rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::LakeError;
use crate::set::Set;
use crate::table::{Cell, Table};
use crate::write::{MAX_REPORT_BYTES, parquet_of};
use crate::{SCHEMA, column, kind};

/// A finding in a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FindingRow {
    /// Columns of text: `finding`, `code`, `subject`, `severity`, …
    pub texts: BTreeMap<&'static str, String>,
    /// `severity_rank`, `confidence`.
    pub numbers: BTreeMap<&'static str, f64>,
    /// Since when, in microseconds since 1970.
    pub since_us: Option<i64>,
    /// When it opened.
    pub opened_us: Option<i64>,
    /// When it was resolved.
    pub resolved_us: Option<i64>,
}

/// A node's report of an hour.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The name of the node.
    pub node: String,
    /// The boot that was watched, as a digest.
    pub boot: String,
    /// When the reported time begins, in microseconds since 1970.
    pub at_us: i64,
    /// Columns of text: attributes, labels, the verdict.
    pub texts: BTreeMap<String, String>,
    /// Columns of numbers: facts.
    pub numbers: BTreeMap<String, f64>,
    /// What was found.
    pub findings: Vec<FindingRow>,
    /// Units and their states, if they were seen.
    pub units: Option<Set>,
    /// Packages and files of units, if they were seen.
    pub software: Option<Set>,
    /// Findings and facts that found no room.
    pub n_left_out: usize,
}

impl Report {
    /// Its path in the lake.
    pub fn path(&self) -> String {
        crate::layout::path_of(&self.node, &self.boot, self.at_us)
    }

    /// The sets that it names: they have to be there before the report is.
    pub fn sets(&self) -> impl Iterator<Item = &Set> {
        self.units.iter().chain(&self.software)
    }

    /// Adds its rows to a table.
    pub fn rows(&self, table: &mut Table) {
        let text = |text: &str| Cell::Text(Arc::from(text));
        let common = [
            (column::SCHEMA, Cell::Number(f64::from(SCHEMA))),
            (column::NODE, text(&self.node)),
            (column::BOOT, text(&self.boot)),
            (column::AT, Cell::Time(self.at_us)),
        ];
        let texts = self.texts.iter();
        let numbers = self.numbers.iter();
        let sets = [
            (column::UNIT_SET, &self.units),
            (column::SOFTWARE_SET, &self.software),
        ];
        let sets = sets
            .into_iter()
            .filter_map(|(name, set)| Some((name, text(&set.as_ref()?.digest()))));
        let own = texts
            .map(|(name, value)| (&**name, text(value)))
            .chain(numbers.map(|(name, value)| (&**name, Cell::Number(*value))))
            .chain(sets);
        let row = common.clone().into_iter().chain(own);
        table.push(row.chain([(column::KIND, text(kind::REPORT))]));
        for finding in &self.findings {
            let texts = finding.texts.iter();
            let numbers = finding.numbers.iter();
            let times = [
                (column::SINCE, finding.since_us),
                (column::OPENED, finding.opened_us),
                (column::RESOLVED, finding.resolved_us),
            ];
            let times = times
                .into_iter()
                .filter_map(|(name, at)| Some((name, Cell::Time(at?))));
            let own = texts
                .map(|(name, value)| (*name, text(value)))
                .chain(numbers.map(|(name, value)| (*name, Cell::Number(*value))))
                .chain(times);
            let row = common.clone().into_iter().chain(own);
            table.push(row.chain([(column::KIND, text(kind::FINDING))]));
        }
    }

    /// Its file, of at most [`MAX_REPORT_BYTES`]. A report that is larger loses what is most
    /// and matters least: titles of findings, then facts from the end of the alphabet on.
    pub fn parquet(&mut self) -> Result<Vec<u8>, LakeError> {
        let bytes = self.written()?;
        if bytes.len() <= MAX_REPORT_BYTES {
            return Ok(bytes);
        }
        for finding in &mut self.findings {
            finding.texts.remove(column::TITLE);
        }
        loop {
            let bytes = self.written()?;
            if bytes.len() <= MAX_REPORT_BYTES {
                return Ok(bytes);
            }
            let n_dropped = self.numbers.len().div_ceil(4);
            if n_dropped == 0 {
                return Err(LakeError::TooLarge {
                    bytes: bytes.len(),
                    most: MAX_REPORT_BYTES,
                });
            }
            for _ in 0..n_dropped {
                self.numbers.pop_last();
            }
            self.n_left_out += n_dropped;
        }
    }

    fn written(&self) -> Result<Vec<u8>, LakeError> {
        let mut table = Table::default();
        self.rows(&mut table);
        parquet_of(table)
    }
}
