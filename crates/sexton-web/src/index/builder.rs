//! Reads records into lanes.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use sexton_model::fact::Fact;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

use super::census::Census;
use super::cores::Cores;
use super::events::{EventList, Happening};
use super::gaps::Blind;
use super::pyramid::Pyramid;
use super::table::{self, EVENTS, NIC_COUNTERS, SERIES, SeriesSpec, Whose};
use super::words;

/// Cells of a lane of the whole node: at 100 ms, 14 hours.
const MAX_CELLS: usize = 1 << 19;

/// What can be shown of a recording over time.
#[derive(Debug, Default)]
pub(crate) struct Index {
    series: Vec<Option<Pyramid>>,
    /// The value before, by lane and subject.
    before: AHashMap<(usize, Subject), (u64, f64)>,
    cores: Cores,
    census: Census,
    events: BTreeMap<&'static str, EventList>,
    counters: AHashMap<(usize, Subject), (u64, f64)>,
    blind: Blind,
    wall: Vec<(Moment, u64)>,
    span: Option<(u64, u64)>,
    texts: AHashMap<String, Arc<str>>,
}

/// Texts that are kept once; more are kept each for itself.
const MAX_TEXTS: usize = 50_000;

impl Index {
    /// Prepares for reading what came since: from this moment on everything is read again.
    pub(crate) fn cut(&mut self, from_ns: u64) {
        for list in self.events.values_mut() {
            list.cut(from_ns);
        }
    }

    /// Takes a record. They come in the order of time.
    pub(crate) fn add(&mut self, record: &Record) {
        let at_ns = record.at.as_ns();
        match &record.body {
            Body::Sample { fact, value } => {
                self.note(at_ns, &record.sensor);
                self.sample(record, fact, *value);
            }
            Body::Event { fact, .. } => {
                self.blind.sees(&record.sensor, at_ns);
                self.census.event(record, fact);
                // Events may be of long before the recording, so they do not tell when it was.
                if let Some(words) = words::of(record, fact) {
                    self.happen(words, at_ns, record.subject.clone());
                }
            }
            Body::Gap(gap) => self.gap(at_ns, &record.subject, gap),
        }
    }

    fn note(&mut self, at_ns: u64, sensor: &str) {
        let (from, to) = self.span.unwrap_or((at_ns, at_ns));
        self.span = Some((from.min(at_ns), to.max(at_ns)));
        self.blind.sees(sensor, at_ns);
    }

    fn sample(&mut self, record: &Record, fact: &'static Fact, value: f64) {
        let at_ns = record.at.as_ns();
        if *fact == SEXTON_WALL_CLOCK_NS {
            if self.wall.last().is_none_or(|(last, _)| *last < record.at) {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "nanoseconds since 1970"
                )]
                self.wall.push((record.at, value as u64));
            }
            return;
        }
        if record.subject.kind == SubjectKind::Cpu && self.cores.takes(fact) {
            return self.cores.add(&record.subject, fact, at_ns, value);
        }
        self.census.sample(record, fact, value);
        for (n, spec) in SERIES.iter().enumerate() {
            if *spec.fact == *fact {
                self.value(n, spec, record, value);
            }
        }
        for (n, (counter, what)) in NIC_COUNTERS.iter().enumerate() {
            if **counter == *fact {
                self.count(n, counter, what, record, value);
            }
        }
    }

    fn value(&mut self, n: usize, spec: &SeriesSpec, record: &Record, value: f64) {
        if spec.whose == Whose::Node && record.subject.kind != SubjectKind::Node {
            return;
        }
        let at_ns = record.at.as_ns();
        let key = (n, record.subject.clone());
        let before = self.before.get(&key).copied();
        if before.is_some_and(|(before, _)| before >= at_ns) {
            return;
        }
        self.before.insert(key, (at_ns, value));
        let shown = match (spec.grows, before) {
            (false, _) => value,
            // A counter that is reset begins anew.
            (true, Some((_, last))) if value >= last => value - last,
            (true, Some(_)) => value,
            (true, None) => return,
        };
        let before = before.filter(|(before, _)| at_ns - before <= spec.cover_ns);
        let from_ns = before.map_or(at_ns, |(before, _)| before);
        if let (true, Some((_, held))) = (spec.holds, before) {
            self.cover(n, from_ns, at_ns, held);
            self.cover(n, at_ns, at_ns, shown);
        } else {
            self.cover(n, from_ns, at_ns, shown);
        }
    }

    fn cover(&mut self, n: usize, from_ns: u64, to_ns: u64, value: f64) {
        let Some(spec) = SERIES.get(n) else {
            return;
        };
        if self.series.len() <= n {
            self.series.resize_with(n + 1, || None);
        }
        let is_ratio = spec.unit == table::LaneUnit::Ratio;
        let pyramid =
            self.series[n].get_or_insert_with(|| Pyramid::new(spec.cell_ns, MAX_CELLS, is_ratio));
        #[allow(clippy::cast_possible_truncation, reason = "shown with few digits")]
        pyramid.cover(from_ns, to_ns, value as f32);
    }

    /// A counter of a network device grew: something happened.
    fn count(&mut self, n: usize, fact: &Fact, what: &str, record: &Record, value: f64) {
        let at_ns = record.at.as_ns();
        let key = (n, record.subject.clone());
        let before = self.counters.insert(key, (at_ns, value));
        let Some((before_ns, before)) = before else {
            return;
        };
        if before_ns < at_ns && value > before {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a positive count"
            )]
            let n = (value - before) as u64;
            let words = words::Words {
                lane: table::NIC,
                kind: fact.name.to_owned(),
                text: format!("{}: {n} {what}", record.subject),
                n: n.max(1),
            };
            self.happen(words, at_ns, record.subject.clone());
        }
    }

    fn gap(&mut self, at_ns: u64, subject: &Subject, gap: &Gap) {
        self.blind.add(at_ns, subject, gap);
        let words = words::Words {
            lane: table::GAPS,
            kind: gap.sensor.to_string(),
            text: gap.text.clone(),
            n: 1,
        };
        self.happen(words, at_ns, subject.clone());
    }

    fn happen(&mut self, words: words::Words, at_ns: u64, subject: Subject) {
        let event = Happening {
            at_ns,
            kind: self.text(words.kind),
            text: self.text(words.text),
            subject,
            n: words.n,
        };
        self.events.entry(words.lane).or_default().add(event);
    }

    fn text(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.texts.get(&text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.as_str().into();
        if self.texts.len() < MAX_TEXTS {
            self.texts.insert(text, Arc::clone(&shared));
        }
        shared
    }

    /// What was read so far is complete for now.
    pub(crate) fn settle(&mut self) {
        self.cores.settle();
        let end_ns = self.span.map_or(0, |(_, end)| end);
        let held: Vec<(usize, u64, f64)> = self
            .before
            .iter()
            .filter(|((n, _), _)| SERIES.get(*n).is_some_and(|spec| spec.holds))
            .map(|((n, _), (at_ns, value))| (*n, *at_ns, *value))
            .collect();
        for (n, at_ns, value) in held {
            if at_ns < end_ns && end_ns - at_ns <= SERIES[n].cover_ns {
                self.cover(n, at_ns, end_ns, value);
            }
        }
    }

    /// From the first sample to the last.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// What the wall clock said, at moments.
    pub(crate) fn wall(&self) -> &[(Moment, u64)] {
        &self.wall
    }

    /// What is known of dying memory cgroups.
    pub(crate) fn census(&self) -> &Census {
        &self.census
    }

    /// Times at which sensors saw nothing.
    pub(crate) fn blind(&self) -> &Blind {
        &self.blind
    }

    /// The lanes of values: what they are, and the values.
    pub(super) fn series(&self) -> impl Iterator<Item = (&'static SeriesSpec, Option<&Pyramid>)> {
        let pyramid = |n: usize| self.series.get(n).and_then(Option::as_ref);
        SERIES
            .iter()
            .enumerate()
            .map(move |(n, spec)| (spec, pyramid(n)))
    }

    /// Those of cores.
    pub(super) fn cores(&self) -> &Cores {
        &self.cores
    }

    /// The lanes of events.
    pub(super) fn events(
        &self,
    ) -> impl Iterator<Item = (&'static table::EventSpec, Option<&EventList>)> {
        EVENTS.iter().map(|spec| (spec, self.events.get(spec.id)))
    }
}
