//! What each thread took.

use ahash::AHashMap;
use sexton_model::stack::{NameId, StackSample, StackTables};

use crate::filter::{Filter, Matcher};
use crate::flame::Count;
use crate::import::Sink;
use crate::top;
use crate::weight::{Unit, Weight};

/// More threads than this are not told apart: a thread's number has 22 bits.
const MAX_THREADS: usize = 1 << 22;

/// One thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCount {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// The name it had last.
    pub comm: NameId,
    /// How much.
    pub count: Count,
}

/// Counts what each thread took, of what a filter lets pass.
#[derive(Debug)]
pub struct ThreadCounts {
    matcher: Matcher,
    weight: Weight,
    threads: AHashMap<(u32, u32), (NameId, Count)>,
    total: Count,
    events: top::Events,
}

impl ThreadCounts {
    /// Nothing counted yet.
    pub fn new(filter: Filter, weight: Weight) -> Self {
        Self {
            matcher: Matcher::new(filter),
            weight,
            threads: AHashMap::new(),
            total: Count::default(),
            events: top::Events::default(),
        }
    }

    /// All samples together.
    pub fn total(&self) -> Count {
        self.total
    }

    /// The event of all samples, where they have one.
    pub fn event(&self) -> Option<NameId> {
        self.events.only()
    }

    /// What sums count.
    pub fn unit(&self, tables: &StackTables) -> Unit {
        Unit::of(self.total, self.events.only(), tables)
    }

    /// Threads, most first.
    pub fn threads(&self) -> Vec<ThreadCount> {
        let thread = |(&(pid, tid), &(comm, count))| ThreadCount {
            pid,
            tid,
            comm,
            count,
        };
        let mut threads: Vec<ThreadCount> = self.threads.iter().map(thread).collect();
        threads.sort_by_key(|t| (std::cmp::Reverse(t.count.weight), t.pid, t.tid));
        threads
    }
}

impl Sink for ThreadCounts {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        if !self.matcher.accepts(sample, tables) {
            return;
        }
        let one = self.weight.of(sample);
        self.events.add(sample.event);
        top::add(&mut self.total, one);
        let key = (sample.pid, sample.tid);
        if self.threads.len() < MAX_THREADS || self.threads.contains_key(&key) {
            let (comm, count) = self
                .threads
                .entry(key)
                .or_insert((sample.comm, Count::default()));
            *comm = sample.comm;
            top::add(count, one);
        }
    }

    fn wants_stacks(&self) -> bool {
        self.matcher.looks_at_stacks()
    }

    fn matcher(&self) -> Option<&Matcher> {
        Some(&self.matcher)
    }

    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        Some(&mut self.matcher)
    }
}
