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
    /// The labels that distinguish its series.
    pub labels: &'static [Label],
    /// More series than this are left out, and counted.
    pub max_series: u32,
}

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
    /// A field of the event, by its name. Its values are few by definition.
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
            labels: &[],
            max_series: 1,
        }
    }

    /// A value of the node that only grows, or the number of events.
    pub const fn counter(name: &'static str) -> Self {
        Self {
            is_counter: true,
            ..Self::gauge(name)
        }
    }

    /// Several series, distinguished by labels, up to a bound.
    #[must_use]
    pub const fn by(mut self, labels: &'static [Label], max_series: u32) -> Self {
        (self.labels, self.max_series) = (labels, max_series);
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
        self.is_counter == (kind != FactKind::Gauge)
    }
}

/// By core.
pub const CORES: &[Label] = &[Label::subject("core")];
/// By network device, or queue of one.
pub const DEVICES: &[Label] = &[Label::subject("device")];
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
            for label in metric.labels {
                assert!(is_name(label.name), "{name}");
                if label.of == LabelOf::Field {
                    let payload = fact.payload.expect("an event");
                    let fields = payload.fields.iter();
                    let is_there = fields.clone().any(|field| field.name == label.name);
                    assert!(is_there, "{name} has no field {}", label.name);
                }
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
