//! What differs between two recordings.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use sexton_model::stack::{NameId, StackSample, StackTables};

use crate::flame::StackCounts;
use crate::import::Sink;
use crate::merge::Merger;
use crate::top;

/// Counts recordings one after the other, under one set of tables.
#[derive(Debug, Default)]
pub struct Together {
    merger: Merger,
    n_read: u64,
}

/// One of them, while it is read.
pub struct Side<'a> {
    merger: &'a mut Merger,
    number: u64,
    counts: &'a mut StackCounts,
}

impl Together {
    /// Where the samples of the next recording go.
    pub fn next<'a>(&'a mut self, counts: &'a mut StackCounts) -> Side<'a> {
        self.n_read += 1;
        Side {
            merger: &mut self.merger,
            number: self.n_read,
            counts,
        }
    }

    /// What all counts refer to.
    pub fn tables(&self) -> &StackTables {
        self.merger.tables()
    }
}

impl Sink for Side<'_> {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        let samples = std::slice::from_ref(sample);
        self.merger.feed(self.number, samples, tables, self.counts);
    }

    fn events(&mut self, names: &[NameId], tables: &StackTables) {
        let names = self.merger.names(self.number, names, tables);
        self.counts.events(&names, self.merger.tables());
    }

    fn wants_addresses(&self) -> bool {
        self.counts.wants_addresses()
    }

    fn begin(&mut self, at_ns: u64) {
        self.counts.begin(at_ns);
    }

    fn window_ns(&self) -> RangeInclusive<u64> {
        self.counts.window_ns()
    }
}

/// A function in two recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name, as in a flame graph.
    pub name: String,
    /// The file it is in, where that is known.
    pub module: String,
    /// The share of what ran in it, in percent, before and after.
    pub own: [f64; 2],
    /// The same, with what it called.
    pub total: [f64; 2],
}

impl Change {
    /// By how much its own share changed.
    pub fn own_change(&self) -> f64 {
        self.own[1] - self.own[0]
    }
}

/// Functions, those whose own share changed most first.
pub fn changes(before: &StackCounts, after: &StackCounts, tables: &StackTables) -> Vec<Change> {
    let mut by_name: BTreeMap<(String, String), Change> = BTreeMap::new();
    for (side, counts) in [before, after].into_iter().enumerate() {
        let all = counts.total().weight;
        for function in top::functions(counts, tables) {
            let key = (function.name.clone(), function.module.clone());
            let change = by_name.entry(key).or_insert_with(|| Change {
                name: function.name,
                module: function.module,
                own: [0.0; 2],
                total: [0.0; 2],
            });
            change.own[side] = crate::export::svg::percent(function.own.weight, all);
            change.total[side] = crate::export::svg::percent(function.total.weight, all);
        }
    }
    let mut changes: Vec<Change> = by_name.into_values().collect();
    // Stable, so that equal ones stay sorted by name.
    changes.sort_by(|a, b| b.own_change().abs().total_cmp(&a.own_change().abs()));
    changes
}
