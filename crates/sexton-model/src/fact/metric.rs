//! How a fact is exported as a metric: its name, its labels, and how many series it may have.
//! An exporter reads this and nothing else.
//!
//! Names follow Prometheus: seconds, bytes and ratios; `_total` at the end of counters. Labels come
//! from bounded sets only, and each metric says how many series it has at most, so that no node
//! floods a metrics store.

use super::{FactKind, Measure};

/// A metric, of one fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name: `sexton_memcg_dying`.
    pub name: &'static str,
    /// Whether it only grows. One of events counts them.
    pub is_counter: bool,
    /// Of events: the field that a counter adds, 1 where it is missing, and a gauge is set to.
    pub field: Option<&'static str>,
    /// The labels that distinguish its series.
    pub labels: &'static [Label],
    /// More series than this are folded into one, and counted.
    pub max_series: u32,
    /// How long the last word on a series holds.
    pub holds: Holds,
}

/// How long the last word on a series holds while its sensor sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Until the next one, or until what it is about is gone.
    Always,
    /// For this number of seconds: what is not recorded again is gone.
    Seconds(u64),
    /// Until the next poll of its sensor, which tells everything there is.
    Poll,
}

/// Sensors whose series go away without a word poll every 30 s or more often.
const USUAL_HOLD: Holds = Holds::Seconds(120);

/// What tells series of one metric apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// Where its values come from.
    pub of: LabelOf,
}

/// Where the values of a label come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOf {
    /// What the record is about: a core, a device. Records about the node itself are left out.
    Subject,
    /// A field of the event, by its name; `unknown` where it is missing.
    Field,
}

impl Label {
    /// The subject, under this name.
    pub const fn subject(name: &'static str) -> Self {
        let of = LabelOf::Subject;
        Self { name, of }
    }

    /// The field of this name.
    pub const fn field(name: &'static str) -> Self {
        let of = LabelOf::Field;
        Self { name, of }
    }
}

impl Metric {
    /// A value of the node that goes up and down.
    pub const fn gauge(name: &'static str) -> Self {
        Self {
            name,
            is_counter: false,
            field: None,
            labels: &[],
            max_series: 1,
            holds: Holds::Always,
        }
    }

    /// A value of the node that only grows, or the number of events.
    pub const fn counter(name: &'static str) -> Self {
        Self {
            is_counter: true,
            ..Self::gauge(name)
        }
    }

    /// Several series, distinguished by labels, up to a bound. Values of what is not told again
    /// are gone after two minutes; counts of events stay.
    #[must_use]
    pub const fn by(mut self, labels: &'static [Label], max_series: u32) -> Self {
        (self.labels, self.max_series) = (labels, max_series);
        self.holds = USUAL_HOLD;
        self
    }

    /// The last word on each series holds for so long.
    #[must_use]
    pub const fn holding(mut self, holds: Holds) -> Self {
        self.holds = holds;
        self
    }

    /// Of events: takes its value from this field.
    #[must_use]
    pub const fn of(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// A value of the fact in the unit of the metric: nanoseconds are exported as seconds.
    pub fn value(&self, measure: Measure, value: f64) -> f64 {
        match measure {
            Measure::Nanoseconds => value / 1e9,
            _ => value,
        }
    }

    /// What a name must end with, before `_total`, by what values are measured in.
    pub fn suffix(measure: Measure) -> Option<&'static str> {
        match measure {
            Measure::Bytes => Some("_bytes"),
            Measure::Nanoseconds | Measure::Seconds => Some("_seconds"),
            Measure::Ratio => Some("_ratio"),
            Measure::Count | Measure::None => None,
        }
    }

    /// Whether it fits a fact of this kind.
    pub fn fits(&self, kind: FactKind) -> bool {
        match kind {
            FactKind::Gauge => !self.is_counter && self.field.is_none(),
            FactKind::Counter => self.is_counter && self.field.is_none(),
            FactKind::Event => self.is_counter || self.field.is_some(),
        }
    }
}

/// By core.
pub const CORES: &[Label] = &[Label::subject("core")];
/// By network device, or queue of one.
pub const DEVICES: &[Label] = &[Label::subject("device")];
/// By image of containers.
pub const IMAGES: &[Label] = &[Label::field("image")];
/// By filesystem.
pub const MOUNTS: &[Label] = &[Label::subject("mount")];
/// By limit.
pub const LIMITS: &[Label] = &[Label::subject("limit")];
/// By sensor.
pub const SENSORS: &[Label] = &[Label::subject("sensor")];

/// Cores of the largest machines.
pub const MAX_CORES: u32 = 1_024;
/// Devices with their queues: a node has a few cards with a queue for each core.
pub const MAX_DEVICES: u32 = 2_048;
/// Units, images and origins: those with the largest values are what one looks for.
pub const MAX_NAMES: u32 = 50;

/// A metric of devices and their queues, which are recorded when they change.
pub(super) const fn by_device(metric: Metric) -> Metric {
    metric.by(DEVICES, MAX_DEVICES).holding(Holds::Always)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{self, Fact};

    fn metrics() -> impl Iterator<Item = (&'static Fact, Metric)> {
        fact::all().filter_map(|fact| Some((fact, fact.metric?)))
    }

    fn is_name(text: &str) -> bool {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(plain)
            && !text.contains("__")
            && !text.ends_with('_')
    }

    #[test]
    fn names_are_those_of_prometheus_and_carry_their_unit() {
        assert!(metrics().count() >= 60);
        for (fact, metric) in metrics() {
            let name = metric.name;
            assert!(is_name(name) && name.starts_with("sexton_"), "{name}");
            assert_eq!(name.ends_with("_total"), metric.is_counter, "{name}");
            assert!(metric.fits(fact.kind), "{name}");
            let stem = name.strip_suffix("_total").unwrap_or(name);
            let own = Metric::suffix(fact.measure);
            for suffix in ["_bytes", "_seconds", "_ratio"] {
                assert_eq!(stem.ends_with(suffix), own == Some(suffix), "{name}");
            }
            assert!(!stem.ends_with("_ns"), "{name}");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = metrics().map(|(_, metric)| metric.name).collect();
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
    }

    #[test]
    fn labels_lead_somewhere_and_series_are_bounded() {
        for (fact, metric) in metrics() {
            let name = metric.name;
            assert_eq!(metric.labels.is_empty(), metric.max_series == 1, "{name}");
            assert!((1..=MAX_DEVICES).contains(&metric.max_series), "{name}");
            let mut of_fields: Vec<&str> = metric.field.into_iter().collect();
            for label in metric.labels {
                assert!(is_name(label.name), "{name}");
                of_fields.extend((label.of == LabelOf::Field).then_some(label.name));
            }
            for of in of_fields {
                let payload = fact.payload.expect("an event");
                let is_there = payload.fields.iter().any(|field| field.name == of);
                assert!(is_there, "{name} has no field {of}");
            }
        }
    }

    #[test]
    fn nanoseconds_become_seconds() {
        let metric = Metric::gauge("sexton_x_seconds");
        assert_eq!(metric.value(Measure::Nanoseconds, 1.5e9), 1.5);
        assert_eq!(metric.value(Measure::Bytes, 7.0), 7.0);
    }
}
