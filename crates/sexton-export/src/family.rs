//! The series of one metric: what was last told of each, and which are folded into `other`.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use sexton_model::fact::metric::{Holds, LabelOf, Metric};
use sexton_model::fact::{Fact, FactKind, Measure};
use sexton_model::moment::Moment;
use sexton_model::payload::{Fields, Value, stored};
use sexton_model::record::{Body, Record};
use sexton_model::subject::SubjectKind;

use crate::exposition::{Head, Out};

/// The label of what has no series of its own.
const OTHER: &str = "other";

/// What is kept of one metric, so that memory is bounded. More are counted as folded, and have
/// no part in `other`.
const MAX_KEPT: usize = 16_384;

/// Series that are counted beyond that.
const MAX_COUNTED: usize = 65_536;

/// Longer values of labels are cut, and end with a hash of the whole.
const MAX_LABEL_BYTES: usize = 96;

/// The values of the labels, in their order.
type Key = Box<[Arc<str>]>;

/// What was told of one series.
#[derive(Debug, Clone, Copy)]
struct Told {
    at: Moment,
    value: f64,
    /// The sensor that told it.
    sensor: u16,
    place: Place,
}

/// Where the last scrape showed a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere yet.
    New,
    /// By its own name.
    Shown,
    /// In `other`.
    Folded,
}

/// What says that something which was told holds no longer.
#[derive(Debug)]
pub(crate) struct Ends<'e> {
    pub(crate) now: Moment,
    /// When each sensor last said that it could not see.
    pub(crate) gaps: &'e [Option<Moment>],
    /// When each sensor last told of the whole node.
    pub(crate) polls: &'e [Option<Moment>],
}

/// The series of one metric.
#[derive(Debug)]
pub(crate) struct Family {
    fact: &'static Fact,
    metric: Metric,
    /// The series without labels.
    plain: Option<Told>,
    /// Whether the fact is told of the node as a whole: then the parts do not count.
    is_of_node: bool,
    series: HashMap<Key, Told>,
    /// What keeps `other` of a counter from falling while series come and go.
    base: f64,
    /// Whether `other` was ever shown.
    has_other: bool,
    /// Whether it counts events, which never end.
    counts_events: bool,
    /// Hashes of the series that are not kept, since there is no room.
    beyond: HashSet<u64>,
}

impl Family {
    pub(crate) fn new(fact: &'static Fact, metric: Metric) -> Self {
        let counts_events = fact.kind == FactKind::Event && metric.is_counter;
        // So that the first event is seen to be one more.
        let none_yet = Told {
            at: Moment::default(),
            value: 0.0,
            sensor: 0,
            place: Place::New,
        };
        Self {
            fact,
            metric,
            plain: (counts_events && metric.labels.is_empty()).then_some(none_yet),
            is_of_node: false,
            series: HashMap::new(),
            base: 0.0,
            has_other: false,
            counts_events,
            beyond: HashSet::new(),
        }
    }

    /// Takes a record of the fact. Events from before the beginning are not counted: an agent
    /// that starts again would count them again.
    pub(crate) fn take(&mut self, record: &Record, sensor: u16, began: Moment) {
        if self.counts_events && record.at < began {
            return;
        }
        let (value, fields) = match &record.body {
            Body::Sample { value, .. } => (*value, None),
            Body::Event { payload, .. } => {
                let needs_fields = self.metric.field.is_some() || !self.metric.labels.is_empty();
                let fields = needs_fields.then(|| payload.fields());
                let said = self.metric.field.zip(fields.as_ref());
                let said = said.and_then(|(name, fields)| number(stored(fields, name)?));
                let Some(value) = said.or(self.metric.is_counter.then_some(1.0)) else {
                    return;
                };
                (value, fields)
            }
            Body::Gap(_) => return,
        };
        let told = Told {
            at: record.at,
            value: self.metric.value(self.fact.measure, value),
            sensor,
            place: Place::New,
        };
        if self.metric.labels.is_empty() {
            self.take_plain(record, told);
        } else if let Some(key) = self.key(record, fields.as_ref()) {
            self.take_series(key, told);
        }
    }

    /// Of the node itself, or the largest of its parts in one poll.
    fn take_plain(&mut self, record: &Record, told: Told) {
        let counts_events = self.counts_events;
        let is_node = record.subject.kind == SubjectKind::Node;
        match &mut self.plain {
            Some(known) if counts_events => known.value += told.value,
            Some(_) if self.is_of_node && !is_node => {}
            Some(known) if self.is_of_node == is_node && known.at == told.at => {
                known.value = known.value.max(told.value);
            }
            plain => *plain = Some(told),
        }
        self.is_of_node |= is_node;
    }

    fn take_series(&mut self, key: Key, told: Told) {
        if let Some(known) = self.series.get_mut(&key) {
            let (before, place) = (known.value, known.place);
            *known = Told { place, ..told };
            if self.counts_events {
                known.value += before;
            }
        } else if self.series.len() < MAX_KEPT {
            self.series.insert(key, told);
            self.beyond.clear();
        } else if self.beyond.len() < MAX_COUNTED {
            self.beyond.insert(hash(&key));
        }
    }

    fn key(&self, record: &Record, fields: Option<&Fields>) -> Option<Key> {
        let labels = self.metric.labels.iter().map(|label| match label.of {
            LabelOf::Subject if record.subject.kind == SubjectKind::Node => None,
            LabelOf::Subject => Some(bounded(&record.subject.name)),
            LabelOf::Field => {
                let value = fields.and_then(|fields| stored(fields, label.name));
                let text = value.map_or_else(|| "unknown".to_owned(), ToString::to_string);
                Some(bounded(&text.into()))
            }
        });
        labels.collect()
    }

    /// Forgets what was told of a device and its queues.
    pub(crate) fn forget_device(&mut self, device: &str) {
        let is_gone = |name: &str| {
            let rest = name.strip_prefix(device);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_by_device = self.metric.labels.iter().any(|it| it.name == "device");
        if is_by_device {
            self.retain(|key, _| !is_gone(&key[0]));
        }
    }

    /// Forgets what holds no longer.
    pub(crate) fn end(&mut self, ends: &Ends<'_>) {
        if self.counts_events {
            return;
        }
        let holds = self.metric.holds;
        let holds = |told: &Told| {
            let since = |moments: &[Option<Moment>]| {
                let moment = moments.get(usize::from(told.sensor)).copied().flatten();
                moment.is_some_and(|moment| moment > told.at)
            };
            let is_over = match holds {
                Holds::Always => false,
                Holds::Seconds(seconds) => ends.now.since(told.at).as_secs() > seconds,
                Holds::Poll => since(ends.polls),
            };
            !is_over && !since(ends.gaps)
        };
        if self.plain.as_ref().is_some_and(|told| !holds(told)) {
            self.plain = None;
        }
        self.retain(|_, told| holds(told));
    }

    /// Forgets the rest. What `other` of a counter had of them it keeps.
    fn retain(&mut self, holds: impl Fn(&Key, &Told) -> bool) {
        let mut lost = 0.0;
        self.series.retain(|key, told| {
            let holds = holds(key, told);
            if !holds && told.place == Place::Folded {
                lost += told.value;
            }
            holds
        });
        self.base += lost;
    }

    /// Series with labels.
    pub(crate) fn n_labelled(&self) -> usize {
        self.series.len().min(self.metric.max_series as usize)
    }

    /// Whether it has labels.
    pub(crate) fn is_labelled(&self) -> bool {
        !self.metric.labels.is_empty()
    }

    /// The name of the metric.
    pub(crate) fn name(&self) -> &'static str {
        self.metric.name
    }

    /// Writes it, within a bound of series; returns how many were folded.
    pub(crate) fn write(&mut self, most: usize, out: &mut impl Out) -> usize {
        let name = self.metric.name;
        if self.plain.is_none() && self.series.is_empty() {
            return 0;
        }
        let most = most.min(self.metric.max_series as usize);
        out.head(Head {
            name,
            help: self.fact.help,
            is_counter: self.metric.is_counter,
        });
        if let Some(told) = &self.plain {
            out.line(name, [], told.value);
        }
        let (shown, n_folded) = self.fold(most);
        let names = self.metric.labels.iter().map(|label| label.name);
        for (key, value) in &shown {
            let values = key.iter().map(AsRef::as_ref);
            out.line(name, names.clone().zip(values), *value);
        }
        if n_folded > 0 && most > 0 {
            out.line(name, names.map(|name| (name, OTHER)), self.other());
        }
        n_folded + self.beyond.len()
    }

    /// Decides which series are shown: those of the largest values. Series of a counter that
    /// were shown before stay, so that they do not come and go.
    fn fold(&mut self, most: usize) -> (Vec<(Key, f64)>, usize) {
        let n_all = self.series.len();
        let n_shown = match n_all > most {
            true => most.saturating_sub(1),
            false => n_all,
        };
        let is_counter = self.metric.is_counter;
        let mut ranked: Vec<(&Key, &mut Told)> = self.series.iter_mut().collect();
        let order = |a: &(&Key, &mut Told), b: &(&Key, &mut Told)| {
            let was_shown = |told: &Told| is_counter && told.place == Place::Shown;
            was_shown(b.1)
                .cmp(&was_shown(a.1))
                .then(b.1.value.total_cmp(&a.1.value))
                .then_with(|| a.0.cmp(b.0))
        };
        if n_shown < n_all && n_shown > 0 {
            ranked.select_nth_unstable_by(n_shown - 1, order);
        }
        let mut shown = Vec::with_capacity(n_shown);
        for (rank, (key, told)) in ranked.into_iter().enumerate() {
            let place = match rank < n_shown {
                true => Place::Shown,
                false => Place::Folded,
            };
            // `other` of a counter goes on from where it was, whichever series come and go.
            match (told.place, place) {
                (Place::Folded, Place::Shown) => self.base += told.value,
                (Place::Shown, Place::Folded) => self.base -= told.value,
                // What was counted before it was first seen here did not happen now.
                (Place::New, Place::Folded) if self.has_other && !self.counts_events => {
                    self.base -= told.value;
                }
                _ => {}
            }
            told.place = place;
            if place == Place::Shown {
                shown.push((key.clone(), told.value));
            }
        }
        shown.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.has_other |= n_shown < n_all;
        (shown, n_all - n_shown)
    }

    /// What is folded, together: the sum of what can be added up, else the largest.
    fn other(&self) -> f64 {
        let folded = self
            .series
            .values()
            .filter(|told| told.place == Place::Folded);
        let values = folded.map(|told| told.value);
        match (self.metric.is_counter, self.fact.measure) {
            (true, _) => self.base + values.sum::<f64>(),
            (false, Measure::Count | Measure::Bytes | Measure::None) => values.sum(),
            (false, _) => values.fold(0.0, f64::max),
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Real(real) => Some(*real),
        _ => None,
    }
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A value of a label that takes no more room than it may.
fn bounded(text: &Arc<str>) -> Arc<str> {
    if text.len() <= MAX_LABEL_BYTES {
        return Arc::clone(text);
    }
    let mark = format!("…{:08x}", hash(text) >> 32);
    let most = MAX_LABEL_BYTES - mark.len();
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
    format!("{}{mark}", &text[..end.unwrap_or(0)]).into()
}
