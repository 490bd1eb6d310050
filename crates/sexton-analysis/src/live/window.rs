//! What a stepper remembers: the newest records of each fact, bounded, and the last word on
//! what is said once.

mod lane;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use sexton_model::fact::Fact;
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record, Sink};
use sexton_model::subject::Subject;
use sexton_model::timeline::Timeline;

use super::reach;
use lane::Lane;

/// Gaps that are kept.
const MAX_GAPS: usize = 512;

/// Records in all, as far as their facts have more than [`LEAST_OF_FACT`].
///
/// Chosen: about 20 MB, half of what an agent may take.
const MAX_RECORDS: usize = 100_000;
const LEAST_OF_FACT: usize = 1_024;

/// The newest records of a node.
#[derive(Debug, Default)]
pub struct Window {
    lanes: BTreeMap<&'static str, Lane>,
    gaps: VecDeque<Record>,
    /// The moment of the last trim: what rules call now.
    now: Moment,
    /// sexton's own first word.
    began: Option<Moment>,
    /// What was cut to stay within bounds.
    cuts: Vec<Record>,
}

impl Window {
    /// Takes a record.
    pub fn push(&mut self, record: Record) {
        let Some(fact) = record.fact() else {
            self.gaps.push_back(record);
            if self.gaps.len() > MAX_GAPS * 2 {
                self.trim_gaps(Moment::default());
            }
            return;
        };
        if !reach::is_read(fact) {
            return;
        }
        if is_own_word(fact) {
            let began = self.began.unwrap_or(record.at);
            self.began = Some(began.min(record.at));
        }
        let lane = self.lanes.entry(fact.name);
        let lane = lane.or_insert_with(|| Lane::new(fact, &record.sensor));
        lane.push(record);
    }

    /// Forgets what no rule needs at this moment, and what is more than the bounds allow.
    pub fn trim(&mut self, now: Moment) {
        self.now = now;
        let began = self.began.unwrap_or_default();
        for lane in self.lanes.values_mut() {
            lane.trim(now, began);
        }
        self.keep_starts_of_failed();
        self.shrink();
        self.lanes.retain(|_, lane| !lane.is_empty());
        self.trim_gaps(earlier(now, reach::USUAL));
        self.cuts = self.tell_cuts();
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.gaps.len() + self.lanes.values().map(Lane::len).sum::<usize>()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An old start of a unit says only that the unit is not failed any more: where it never
    /// was, it would be one start too many of a loop.
    fn keep_starts_of_failed(&mut self) {
        use sexton_model::fact::unit::{UNIT_CHANGED, UNIT_FAILED, UNIT_SEEN, UNIT_STARTED};
        let mut failed = std::collections::HashSet::new();
        for name in [UNIT_SEEN.name, UNIT_CHANGED.name, UNIT_FAILED.name] {
            let told = self.lanes.get(name).into_iter().flat_map(Lane::iter);
            failed.extend(
                told.filter(|record| says_failed(record))
                    .map(|record| record.subject.clone()),
            );
        }
        if let Some(starts) = self.lanes.get_mut(UNIT_STARTED.name) {
            starts.keep_carried(|subject| failed.contains(subject));
        }
    }

    /// Takes from the facts with most records until all fit.
    fn shrink(&mut self) {
        let mut n: usize = self.lanes.values().map(Lane::len).sum();
        while n > MAX_RECORDS {
            let largest = self.lanes.values_mut().max_by_key(|lane| lane.len());
            let Some(largest) = largest.filter(|lane| lane.len() > LEAST_OF_FACT) else {
                return;
            };
            let before = largest.len();
            largest.cut_to(LEAST_OF_FACT.max(before / 2), self.now);
            n -= before - largest.len();
        }
    }

    /// Gaps that last (no privilege, not offered here) are said once and stay; others go.
    fn trim_gaps(&mut self, oldest: Moment) {
        let lasts = |record: &Record| matches!(&record.body, Body::Gap(gap) if matches!(gap.why, Why::Denied | Why::Unsupported));
        let mut seen = std::collections::HashSet::new();
        let mut kept: Vec<Record> = Vec::new();
        for record in self.gaps.drain(..).rev() {
            let Body::Gap(gap) = &record.body else {
                continue;
            };
            let key = (
                record.sensor.clone(),
                record.subject.clone(),
                crate::without_numbers(&gap.text),
            );
            let is_wanted = lasts(&record) || record.at >= oldest;
            if is_wanted && kept.len() < MAX_GAPS && seen.insert(key) {
                kept.push(record);
            }
        }
        kept.sort_by_key(|record| record.at);
        self.gaps.extend(kept);
    }

    fn tell_cuts(&self) -> Vec<Record> {
        let cut = self.lanes.values().filter_map(|lane| {
            let since = lane.cut_at(self.now)?;
            Some(format!(
                "{} for {} s",
                lane.fact.name,
                self.now.since(since).as_secs()
            ))
        });
        let cut: Vec<String> = cut.collect();
        if cut.is_empty() {
            return Vec::new();
        }
        let text = format!(
            "more was recorded than is judged at once: {} only",
            cut.join(", ")
        );
        let mut out = Sink::new("judge", self.now);
        out.gap(&Subject::node(), Gap::new("judge", Why::Overrun, text));
        out.into_records()
    }
}

fn says_failed(record: &Record) -> bool {
    use sexton_model::fact::unit::{UNIT_CHANGED, UNIT_FAILED, UNIT_SEEN};
    let seen = record.says(&UNIT_SEEN).or(record.says(&UNIT_CHANGED));
    seen.is_some_and(|says| says.active.as_deref() == Some("failed"))
        || record.says(&UNIT_FAILED).is_some()
}

fn is_own_word(fact: &Fact) -> bool {
    *fact == SEXTON_POLL_NS || *fact == sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS
}

/// So much before a moment.
pub(super) fn earlier(moment: Moment, time: Duration) -> Moment {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Moment::from_ns(moment.as_ns().saturating_sub(ns))
}

impl Timeline for Window {
    fn span(&self) -> Option<RangeInclusive<Moment>> {
        let mut moments = self
            .lanes
            .values()
            .flat_map(Lane::iter)
            .map(|record| record.at);
        let first = moments.next()?;
        let first = moments.fold(first, Moment::min);
        Some(first.min(self.now)..=self.now)
    }

    fn all<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Record> + 'a> {
        let lanes = self.lanes.values().flat_map(Lane::iter);
        let mut all: Vec<&Record> = lanes.chain(&self.gaps).chain(&self.cuts).collect();
        all.sort_by_key(|record| record.at);
        Box::new(all.into_iter())
    }

    fn of<'a>(&'a self, fact: &'static Fact) -> Box<dyn Iterator<Item = &'a Record> + 'a> {
        Box::new(self.lanes.get(fact.name).into_iter().flat_map(Lane::iter))
    }

    fn gaps<'a>(&'a self) -> Box<dyn Iterator<Item = (Moment, &'a Subject, &'a Gap)> + 'a> {
        let gaps = self.gaps.iter().chain(&self.cuts);
        Box::new(gaps.filter_map(|record| match &record.body {
            Body::Gap(gap) => Some((record.at, &record.subject, &**gap)),
            _ => None,
        }))
    }

    fn watched(&self) -> Option<RangeInclusive<Moment>> {
        let began = self.began?.max(earlier(self.now, reach::LONGEST));
        Some(began.min(self.now)..=self.now)
    }
}

#[cfg(test)]
mod tests;
