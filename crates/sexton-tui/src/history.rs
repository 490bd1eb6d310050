//! What has been seen, digested: values by the second, events and gaps one by one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sexton_model::fact::Fact;
use sexton_model::fact::show::{Show, Whose};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

use crate::names::{self, Shown};
use crate::words;

/// Events, and gaps, that are kept of a live node. A storm of them must not fill memory.
const MOST_TOLD: usize = 50_000;

const SECOND_NS: u64 = 1_000_000_000;

/// What a sample of a core covers when nothing is known before it: one look, in seconds.
const LOOK_SECS: f64 = 0.1;

/// From when to when, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

impl Window {
    fn seconds(self) -> (u64, u64) {
        (self.from.as_ns() / SECOND_NS, self.to.as_ns() / SECOND_NS)
    }
}

/// The share of one core that the kernel had, second by second.
#[derive(Debug, Default)]
pub(crate) struct Strip {
    cells: VecDeque<Share>,
    /// The last sample, and the time it covers.
    last: Option<(Moment, f64)>,
}

/// One second of a core. Tenths of a second are as coarse as the kernel's tick, so only
/// their mean over time is told.
#[derive(Debug)]
struct Share {
    second: u64,
    sum: f64,
    covered_secs: f64,
}

impl Strip {
    fn add(&mut self, at: Moment, value: f64, counts: bool) {
        let covers = self.covers(at);
        let second = at.as_ns() / SECOND_NS;
        let place = self.cells.partition_point(|cell| cell.second < second);
        if self
            .cells
            .get(place)
            .is_none_or(|cell| cell.second != second)
        {
            let empty = Share {
                second,
                sum: 0.0,
                covered_secs: 0.0,
            };
            self.cells.insert(place, empty);
        }
        if let Some(cell) = self.cells.get_mut(place) {
            cell.sum += value * covers;
            cell.covered_secs += if counts { covers } else { 0.0 };
        }
    }

    /// The seconds that a sample covers: those since the one before, and at most one. Parts
    /// of a core's time come one after the other, at the same moment.
    fn covers(&mut self, at: Moment) -> f64 {
        let covers = match self.last {
            Some((last, covers)) if last == at => covers,
            Some((last, _)) if last < at => at.since(last).as_secs_f64().min(1.0),
            _ => LOOK_SECS,
        };
        self.last = Some((at, covers));
        covers
    }

    /// The seconds of a window and the mean of each, from 0 to 1.
    pub(crate) fn means(&self, window: Window) -> impl Iterator<Item = (u64, f64)> + '_ {
        let (from, to) = window.seconds();
        let begin = self.cells.partition_point(|cell| cell.second < from);
        let end = self.cells.partition_point(|cell| cell.second <= to);
        self.cells
            .range(begin..end.max(begin))
            .filter(|cell| cell.covered_secs > 0.0)
            .map(|cell| (cell.second, (cell.sum / cell.covered_secs).clamp(0.0, 1.0)))
    }
}

/// Values of one thing, second by second.
#[derive(Debug, Default)]
pub(crate) struct Series {
    cells: VecDeque<Cell>,
}

/// The values of one second.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    second: u64,
    /// The last moment of a value here.
    pub(crate) at: Moment,
    /// The value then.
    pub(crate) last: f64,
    /// The greatest value.
    pub(crate) worst: f64,
    /// Who had that.
    pub(crate) subject: Subject,
}

impl Series {
    fn add(&mut self, at: Moment, value: f64, subject: &Subject) {
        let second = at.as_ns() / SECOND_NS;
        let place = self.cells.partition_point(|cell| cell.second < second);
        match self.cells.get_mut(place) {
            Some(cell) if cell.second == second => cell.add(at, value, subject),
            _ => {
                let subject = subject.clone();
                let (last, worst) = (value, value);
                self.cells.insert(
                    place,
                    Cell {
                        second,
                        at,
                        last,
                        worst,
                        subject,
                    },
                );
            }
        }
    }

    /// What was known last in a window.
    pub(crate) fn last(&self, window: Window) -> Option<&Cell> {
        self.within(window).next_back()
    }

    /// The greatest value of a window; of equal ones the first.
    pub(crate) fn worst(&self, window: Window) -> Option<&Cell> {
        self.within(window).reduce(|worst, cell| {
            if cell.worst > worst.worst {
                cell
            } else {
                worst
            }
        })
    }

    /// All that is known of a window.
    pub(crate) fn within(&self, window: Window) -> impl DoubleEndedIterator<Item = &Cell> {
        let begin = self.cells.partition_point(|cell| cell.at < window.from);
        let end = self.cells.partition_point(|cell| cell.at <= window.to);
        self.cells.range(begin..end.max(begin))
    }
}

impl Cell {
    fn add(&mut self, at: Moment, value: f64, subject: &Subject) {
        // The node's own value is that of one of its cores: name the core.
        let names_it = value == self.worst && self.subject.kind == SubjectKind::Node;
        if value > self.worst || names_it {
            self.worst = value;
            self.subject = subject.clone();
        }
        if at >= self.at {
            self.at = at;
            self.last = value;
        }
    }
}

/// A gap and when.
#[derive(Debug)]
pub(crate) struct Blind {
    pub(crate) at: Moment,
    pub(crate) gap: Gap,
}

/// An event that no panel of its own shows.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) at: Moment,
    /// In one line.
    pub(crate) text: String,
    /// How many at once.
    pub(crate) n: u64,
}

/// All that is kept.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// By number.
    pub(crate) cores: BTreeMap<u32, Strip>,
    /// Dying cgroups of what made them, where that is recorded.
    pub(crate) origins: BTreeMap<Subject, Series>,
    series: BTreeMap<Shown, Series>,
    events: VecDeque<(Shown, Record)>,
    marks: VecDeque<Told>,
    /// The last value of each counter whose growth is an event.
    counters: BTreeMap<(&'static str, Subject), f64>,
    gaps: VecDeque<Blind>,
    heard: BTreeMap<Arc<str>, Window>,
    /// Events and gaps that were let go before their time.
    pub(crate) n_forgotten: u64,
}

static EMPTY: Series = Series {
    cells: VecDeque::new(),
};

impl History {
    pub(crate) fn take(&mut self, record: &Record) {
        match &record.body {
            Body::Gap(gap) => {
                let place = self.gaps.partition_point(|known| known.at <= record.at);
                let (at, gap) = (record.at, Gap::clone(gap));
                self.gaps.insert(place, Blind { at, gap });
            }
            Body::Sample { fact, value } => {
                self.hear(record);
                match names::shown(fact) {
                    _ if !value.is_finite() => {}
                    Some(Shown::Other(_)) => self.measure_other(fact, record, *value),
                    Some(shown) => self.measure(shown, record, *value),
                    None => {}
                }
            }
            Body::Event { fact, payload } => {
                self.hear(record);
                match (names::shown(fact), &fact.show) {
                    (Some(Shown::Other(_)), Show::Marks(mark)) => {
                        if let Some(mark) = mark(&record.subject, &**payload) {
                            self.tell(record.at, mark.text, mark.n);
                        }
                    }
                    (Some(shown), _) => self.happen(shown, record),
                    (None, _) => {}
                }
            }
        }
    }

    fn happen(&mut self, shown: Shown, record: &Record) {
        let place = self
            .events
            .partition_point(|(_, known)| known.at <= record.at);
        self.events.insert(place, (shown, record.clone()));
    }

    fn tell(&mut self, at: Moment, text: String, n: u64) {
        let place = self.marks.partition_point(|known| known.at <= at);
        self.marks.insert(place, Told { at, text, n });
    }

    /// Takes a value of a fact by what its definition says.
    fn measure_other(&mut self, fact: &'static Fact, record: &Record, value: f64) {
        let subject = &record.subject;
        match fact.show {
            Show::Series(series)
                if series.whose == Whose::Any || subject.kind == SubjectKind::Node =>
            {
                let known = self.series.entry(Shown::Other(fact.name)).or_default();
                known.add(record.at, value, subject);
            }
            Show::Growth(_, what) => {
                let last = self.counters.insert((fact.name, subject.clone()), value);
                let grown = last.map_or(0.0, |last| value - last);
                if grown > 0.0 {
                    let text = format!("{subject}: {} {what}", words::count(grown));
                    self.tell(record.at, text, 1);
                }
            }
            _ => {}
        }
    }

    fn measure(&mut self, shown: Shown, record: &Record, value: f64) {
        let subject = &record.subject;
        match shown {
            Shown::Poll => {}
            Shown::CoreSystem | Shown::CoreInterrupts => {
                if let Ok(number) = subject.name.parse() {
                    let strip: &mut Strip = self.cores.entry(number).or_default();
                    strip.add(record.at, value, shown == Shown::CoreSystem);
                }
            }
            Shown::Dying if subject.kind != SubjectKind::Node => {
                let origin = self.origins.entry(subject.clone()).or_default();
                origin.add(record.at, value, subject);
            }
            // Those of cgroups are for rules; here the node's own counts.
            Shown::PressureCpu | Shown::PressureMemory | Shown::PressureIo
                if subject.kind != SubjectKind::Node => {}
            _ => self
                .series
                .entry(shown)
                .or_default()
                .add(record.at, value, subject),
        }
    }

    fn hear(&mut self, record: &Record) {
        let at = record.at;
        match self.heard.get_mut(&*record.sensor) {
            Some(heard) => {
                heard.from = heard.from.min(at);
                heard.to = heard.to.max(at);
            }
            None => {
                self.heard
                    .insert((*record.sensor).into(), Window { from: at, to: at });
            }
        }
    }

    /// Whether a sensor was at work in a window, as far as its first and last word tell.
    pub(crate) fn heard(&self, sensor: &str, window: Window) -> bool {
        self.heard
            .get(sensor)
            .is_some_and(|heard| heard.from <= window.to && window.from <= heard.to)
    }

    /// The values of the node that are shown as this.
    pub(crate) fn series(&self, shown: Shown) -> &Series {
        self.series.get(&shown).unwrap_or(&EMPTY)
    }

    /// The events of a window, the newest first.
    pub(crate) fn events(&self, window: Window) -> impl Iterator<Item = (Shown, &Record)> {
        let begin = self
            .events
            .partition_point(|(_, record)| record.at < window.from);
        let end = self
            .events
            .partition_point(|(_, record)| record.at <= window.to);
        let events = self.events.range(begin..end.max(begin)).rev();
        events.map(|(shown, record)| (*shown, record))
    }

    /// The events of a window that have no panel of their own, the newest first.
    pub(crate) fn marks(&self, window: Window) -> impl Iterator<Item = &Told> {
        let begin = self.marks.partition_point(|told| told.at < window.from);
        let end = self.marks.partition_point(|told| told.at <= window.to);
        self.marks.range(begin..end.max(begin)).rev()
    }

    /// The gaps up to the end of a window, the newest first: what was not to be had when
    /// the sensors were opened is said only then, and still holds.
    pub(crate) fn gaps(&self, window: Window) -> impl Iterator<Item = &Blind> {
        self.gaps
            .iter()
            .rev()
            .filter(move |blind| blind.at <= window.to)
    }

    /// Lets go of what is older than this. Gaps stay: they are few, and may still hold.
    pub(crate) fn forget(&mut self, before: Moment) {
        let second = before.as_ns() / SECOND_NS;
        for strip in self.cores.values_mut() {
            let n = strip.cells.partition_point(|cell| cell.second < second);
            strip.cells.drain(..n);
        }
        for series in self.series.values_mut().chain(self.origins.values_mut()) {
            let n = series.cells.partition_point(|cell| cell.second < second);
            series.cells.drain(..n);
        }
        self.cores.retain(|_, strip| !strip.cells.is_empty());
        self.origins.retain(|_, series| !series.cells.is_empty());
        let n = self
            .events
            .partition_point(|(_, record)| record.at < before);
        self.events.drain(..n);
        let n = self.marks.partition_point(|told| told.at < before);
        self.marks.drain(..n);
        let n_events = self.events.len().saturating_sub(MOST_TOLD);
        self.events.drain(..n_events);
        let n_marks = self.marks.len().saturating_sub(MOST_TOLD);
        self.marks.drain(..n_marks);
        let n_gaps = self.gaps.len().saturating_sub(MOST_TOLD);
        self.gaps.drain(..n_gaps);
        self.n_forgotten += (n_events + n_marks + n_gaps) as u64;
    }
}
