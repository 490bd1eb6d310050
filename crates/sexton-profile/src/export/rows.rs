//! Samples of each thread, for formats that want them so.

use std::collections::BTreeMap;

use std::ops::RangeInclusive;

use sexton_model::stack::{NameId, StackId, StackSample, StackTables};

use crate::filter::{Filter, Matcher};
use crate::import::Sink;

/// One sample of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// When.
    pub at_ns: u64,
    /// What it stands for.
    pub weight: u64,
    /// Where.
    pub stack: StackId,
}

/// One thread.
#[derive(Debug)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// The name it had last.
    pub comm: NameId,
    /// Its samples in the order in which they came.
    pub rows: Vec<Row>,
}

/// Samples that a filter let pass, by thread. These are kept in memory, as a viewer of such
/// a file keeps them.
#[derive(Debug)]
pub struct Rows {
    matcher: Matcher,
    threads: BTreeMap<(u32, u32), Thread>,
    event: Option<NameId>,
}

impl Rows {
    /// None yet.
    pub fn new(filter: Filter) -> Self {
        Self {
            matcher: Matcher::new(filter),
            threads: BTreeMap::new(),
            event: None,
        }
    }

    /// Threads by process and number.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values()
    }

    /// The event of the first sample.
    pub fn event(&self) -> Option<NameId> {
        self.event
    }

    /// How many samples there are.
    pub fn n_samples(&self) -> u64 {
        self.threads().map(|thread| thread.rows.len() as u64).sum()
    }

    /// When the first sample was taken.
    pub fn first_ns(&self) -> u64 {
        let rows = self.threads().flat_map(|thread| &thread.rows);
        rows.map(|row| row.at_ns).min().unwrap_or(0)
    }
}

impl Sink for Rows {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        if !self.matcher.accepts(sample, tables) {
            return;
        }
        self.event.get_or_insert(sample.event);
        let key = (sample.pid, sample.tid);
        let thread = self.threads.entry(key).or_insert_with(|| Thread {
            pid: sample.pid,
            tid: sample.tid,
            comm: sample.comm,
            rows: Vec::new(),
        });
        thread.comm = sample.comm;
        thread.rows.push(Row {
            at_ns: sample.at.as_ns(),
            weight: sample.weight,
            stack: sample.stack,
        });
    }

    fn begin(&mut self, at_ns: u64) {
        self.matcher.begin(at_ns);
    }

    fn window_ns(&self) -> RangeInclusive<u64> {
        self.matcher.window_ns()
    }
}
