//! Reads records into lanes.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::fact::show::{self, BLIND_SPOTS, Mark, Show, Whose};
use sexton_model::fact::{Fact, FactKind, Measure};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

use super::census::Census;
use super::cores::Cores;
use super::events::{EventList, Happening};
use super::gaps::Blind;
use super::pyramid::Pyramid;
use super::table::{SERIES, SeriesSpec};

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
    /// The value before, by counter and subject.
    counters: AHashMap<(&'static str, Subject), (u64, f64)>,
    blind: Blind,
    wall: Vec<(Moment, u64)>,
    span: Option<(u64, u64)>,
    texts: AHashMap<String, Arc<str>>,
}

/// A line of text is cut after so many characters.
const MAX_CHARS: usize = 240;

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
            Body::Event { fact, payload } => {
                self.blind.sees(&record.sensor, at_ns);
                self.census.event(record);
                // Events may be of long before the recording, so they do not tell when it was.
                if let Show::Marks(mark) = fact.show
                    && let Some(mark) = mark(&record.subject, &**payload)
                {
                    let text = cut(mark.text);
                    self.happen(Mark { text, ..mark }, fact.name, record);
                }
            }
            Body::Gap(gap) => self.gap(record, gap),
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
        self.census.sample(record, fact, value);
        match fact.show {
            Show::Core(mode) if record.subject.kind == SubjectKind::Cpu => {
                self.cores.add(&record.subject, mode, at_ns, value);
            }
            Show::Series(_) => {
                if let Some(n) = SERIES.iter().position(|spec| spec.fact == fact) {
                    self.value(n, record, value);
                }
            }
            Show::Growth(lane, what) => self.count(fact, lane, what, record, value),
            _ => {}
        }
    }

    fn value(&mut self, n: usize, record: &Record, value: f64) {
        let SeriesSpec { fact, series } = &SERIES[n];
        if series.whose == Whose::Node && record.subject.kind != SubjectKind::Node {
            return;
        }
        let at_ns = record.at.as_ns();
        let key = (n, record.subject.clone());
        let before = self.before.get(&key).copied();
        if before.is_some_and(|(before, _)| before >= at_ns) {
            return;
        }
        self.before.insert(key, (at_ns, value));
        let shown = match (fact.kind == FactKind::Counter, before) {
            (false, _) => value,
            // A counter that is reset begins anew.
            (true, Some((since_ns, last))) => {
                let grown = if value >= last { value - last } else { value };
                per_second(grown, at_ns - since_ns)
            }
            (true, None) => return,
        };
        let before = before.filter(|(before, _)| at_ns - before <= series.cover_ns);
        let from_ns = before.map_or(at_ns, |(before, _)| before);
        if let (true, Some((_, held))) = (series.holds, before) {
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
        let is_ratio = spec.fact.measure == Measure::Ratio;
        let cell_ns = spec.series.cell_ns;
        let pyramid =
            self.series[n].get_or_insert_with(|| Pyramid::new(cell_ns, MAX_CELLS, is_ratio));
        #[allow(clippy::cast_possible_truncation, reason = "shown with few digits")]
        pyramid.cover(from_ns, to_ns, value as f32);
    }

    /// A counter that only grows when something happened.
    fn count(
        &mut self,
        fact: &'static Fact,
        lane: &'static show::Lane,
        what: &str,
        record: &Record,
        value: f64,
    ) {
        let at_ns = record.at.as_ns();
        let key = (fact.name, record.subject.clone());
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
            let mark = Mark::new(lane, format!("{}: {n} {what}", record.subject)).times(n);
            self.happen(mark, fact.name, record);
        }
    }

    fn gap(&mut self, record: &Record, gap: &Gap) {
        self.blind.add(record.at.as_ns(), &record.subject, gap);
        let mark = Mark::new(&BLIND_SPOTS, gap.text.clone());
        self.happen(mark, &gap.sensor, record);
    }

    /// The sort of a mark is that of its record, unless it says so itself.
    fn happen(&mut self, mark: Mark, sort: &str, record: &Record) {
        let kind = mark.kind.as_deref().unwrap_or(sort).to_owned();
        let event = Happening {
            at_ns: record.at.as_ns(),
            kind: self.text(kind),
            text: self.text(mark.text),
            subject: record.subject.clone(),
            n: mark.n,
        };
        self.events.entry(mark.lane.id).or_default().add(event);
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
            .filter(|((n, _), _)| SERIES.get(*n).is_some_and(|spec| spec.series.holds))
            .map(|((n, _), (at_ns, value))| (*n, *at_ns, *value))
            .collect();
        for (n, at_ns, value) in held {
            if at_ns < end_ns && end_ns - at_ns <= SERIES[n].series.cover_ns {
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
    pub(super) fn events(&self) -> impl Iterator<Item = (&'static show::Lane, Option<&EventList>)> {
        let list = |lane: &&'static show::Lane| (*lane, self.events.get(lane.id));
        show::LANES.iter().map(list)
    }
}

#[allow(clippy::cast_precision_loss, reason = "shown with few digits")]
fn per_second(grown: f64, during_ns: u64) -> f64 {
    grown / (during_ns as f64 / 1e9)
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::cgroup::CGROUP_BIRTHS;

    use super::*;

    #[test]
    fn a_counter_is_shown_by_how_much_it_grows_in_a_second() {
        let mut index = Index::default();
        for (second, value) in [(1, 1000.0), (5, 1040.0), (7, 6.0)] {
            index.add(&Record {
                at: Moment::from_ns(second * 1_000_000_000),
                sensor: "cgroups".into(),
                subject: Subject::node(),
                body: Body::Sample {
                    fact: &CGROUP_BIRTHS,
                    value,
                },
            });
        }
        let (_, grown) = index
            .series()
            .find(|(spec, _)| *spec.fact == CGROUP_BIRTHS)
            .expect("it has a lane");
        // 40 in 4 s; then it was reset, and has counted 6 in 2 s.
        let columns = grown
            .expect("values")
            .columns(1_000_000_000, 1_000_000_000, 6);
        assert_eq!(columns.max[1], Some(10.0));
        assert_eq!(columns.max[5], Some(3.0));
    }
}
