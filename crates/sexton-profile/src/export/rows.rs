//! Samples of each thread, for formats that want them so.

use std::collections::BTreeMap;

use sexton_model::stack::{NameId, StackId, StackSample, StackTables};

use crate::filter::{Filter, Matcher};
use crate::flame::Count;
use crate::import::Sink;
use crate::top::{self, Events};
use crate::weight::{Unit, Weight};

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
    weight: Weight,
    total: Count,
    events: Events,
}

impl Rows {
    /// None yet.
    pub fn new(filter: Filter) -> Self {
        Self {
            matcher: Matcher::new(filter),
            threads: BTreeMap::new(),
            weight: Weight::default(),
            total: Count::default(),
            events: Events::default(),
        }
    }

    /// The same, adding up this.
    pub fn weighed(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    /// What weights count.
    pub fn unit(&self, tables: &StackTables) -> Unit {
        Unit::of(self.total, self.events.only(), tables)
    }

    /// Threads by process and number.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values()
    }

    /// The event of all samples, where they have one.
    pub fn event(&self) -> Option<NameId> {
        self.events.only()
    }

    /// What a sample adds. Weights of several events do not add up: then each is one.
    pub fn weight_of(&self, row: &Row) -> u64 {
        if self.events.are_several() {
            1
        } else {
            row.weight
        }
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
        self.events.add(sample.event);
        let one = self.weight.of(sample);
        top::add(&mut self.total, one);
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
            weight: one.weight,
            stack: sample.stack,
        });
    }

    fn matcher(&self) -> Option<&Matcher> {
        Some(&self.matcher)
    }

    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        Some(&mut self.matcher)
    }
}
