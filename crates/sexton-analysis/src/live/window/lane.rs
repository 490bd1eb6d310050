//! The records of one fact.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::fact::{Fact, FactKind};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::subject::Subject;

use super::earlier;
use crate::live::reach;

/// The most samples and the most events of one fact.
///
/// Chosen: a node of 96 cores makes some 100 samples a second of a fact, so that a step
/// every 30 s sees each of them twice; events are larger.
const MAX_SAMPLES: usize = 8_192;
const MAX_EVENTS: usize = 4_096;

/// Polls of a sensor that are this near to each other say nothing more.
const POLLS_APART: Duration = Duration::from_secs(10);

/// A sensor that was polled once only counts as at work for this long: the longest beat of
/// all is an hour.
const ONLY_POLL: Duration = Duration::from_secs(2 * 3600);

/// The newest records of a fact, and the last word on each subject if that holds.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) fact: &'static Fact,
    reach: Duration,
    is_state: bool,
    /// In the order of time after a trim.
    records: Vec<Record>,
    /// Older than the reach: one for each subject, in the order of time after a trim.
    carried: Vec<Record>,
    /// Younger records than this were dropped, because there were too many.
    cut: Option<Moment>,
}

impl Lane {
    pub(super) fn new(fact: &'static Fact, sensor: &str) -> Self {
        Self {
            fact,
            reach: reach::of_sensor(sensor),
            is_state: reach::is_state(fact),
            records: Vec::new(),
            carried: Vec::new(),
            cut: None,
        }
    }

    pub(super) fn push(&mut self, record: Record) {
        self.records.push(record);
        if self.records.len() > self.most() * 2 {
            let last = self.records.iter().map(|record| record.at).max();
            self.cut_to(self.most(), last.unwrap_or_default());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len() + self.carried.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In the order of time, after a trim.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.carried.iter().chain(&self.records)
    }

    /// Forgets what is older than the reach; what came before the watch began (the kernel's
    /// log, times of units) counts from there.
    pub(super) fn trim(&mut self, now: Moment, began: Moment) {
        self.records.sort_by_key(|record| record.at);
        if *self.fact == SEXTON_POLL_NS {
            return self.trim_polls(now);
        }
        let oldest = earlier(now, self.reach);
        if began < oldest {
            let n_old = self.records.partition_point(|record| record.at < oldest);
            self.drop_first(n_old);
        }
        let most = self.most();
        if self.records.len() > most {
            self.cut_to(most, now);
        }
        // A burst must not be paid for until the end.
        if self.records.capacity() > self.records.len() * 2 {
            self.records.shrink_to(self.records.len() * 5 / 4);
        }
    }

    /// Keeps this number of the newest.
    pub(super) fn cut_to(&mut self, n: usize, now: Moment) {
        self.records.sort_by_key(|record| record.at);
        let n_old = self.records.len().saturating_sub(n);
        if n_old == 0 {
            return;
        }
        self.drop_first(n_old);
        let first = self.records.first().map_or(now, |record| record.at);
        self.cut = Some(first);
    }

    /// From when on there is all, if that is less than the reach.
    pub(super) fn cut_at(&self, now: Moment) -> Option<Moment> {
        self.cut.filter(|cut| *cut > earlier(now, self.reach))
    }

    /// Keeps the last word only on these subjects.
    pub(super) fn keep_carried(&mut self, is_wanted: impl Fn(&Subject) -> bool) {
        self.carried.retain(|record| is_wanted(&record.subject));
    }

    fn most(&self) -> usize {
        match self.fact.kind {
            FactKind::Event => MAX_EVENTS,
            _ => MAX_SAMPLES,
        }
    }

    fn drop_first(&mut self, n: usize) {
        let old = self.records.drain(..n);
        if !self.is_state {
            return;
        }
        let mut last: HashMap<Subject, Record> = HashMap::new();
        for record in self.carried.drain(..).chain(old) {
            last.insert(record.subject.clone(), record);
        }
        self.carried = last.into_values().collect();
        self.carried
            .sort_by(|a, b| (a.at, &a.subject).cmp(&(b.at, &b.subject)));
        let n_over = self.carried.len().saturating_sub(MAX_EVENTS);
        self.carried.drain(..n_over);
    }

    /// Of each sensor: its last two polls, so that one on a slow beat counts as at work and
    /// one that is stuck does not; and of the others one in a while.
    fn trim_polls(&mut self, now: Moment) {
        let oldest = earlier(now, self.reach);
        let mut newest: HashMap<Subject, (Moment, Option<Moment>)> = HashMap::new();
        for record in &self.records {
            let last = newest.get(&record.subject).map(|(last, _)| *last);
            newest.insert(record.subject.clone(), (record.at, last));
        }
        let mut told: HashSet<(Subject, u64)> = HashSet::new();
        self.records.retain(|record| {
            let (last, before) = newest[&record.subject];
            if record.at == last || Some(record.at) == before {
                let beat = before.map_or(ONLY_POLL, |before| last.since(before) * 3);
                return now.since(last) <= beat.max(self.reach);
            }
            let cell = record.at.as_ns() / POLLS_APART.as_nanos() as u64;
            record.at >= oldest && told.insert((record.subject.clone(), cell))
        });
    }
}
