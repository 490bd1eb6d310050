//! Times at which a sensor saw nothing, from what it said of itself to its next word.

use std::collections::BTreeMap;
use std::sync::Arc;

use sexton_model::gap::Gap;
use sexton_model::subject::{Subject, SubjectKind};

/// More are not told apart.
const MAX_SPANS: usize = 10_000;

/// A time at which a sensor saw nothing.
#[derive(Debug, Clone)]
pub(crate) struct BlindSpan {
    pub(crate) from_ns: u64,
    /// `None` while it sees nothing.
    pub(crate) to_ns: Option<u64>,
    pub(crate) why: Arc<str>,
}

/// Such times of all sensors.
#[derive(Debug, Default)]
pub(crate) struct Blind {
    by_sensor: BTreeMap<String, Vec<BlindSpan>>,
    /// What the store lost, which is of everybody.
    lost: Vec<BlindSpan>,
}

impl Blind {
    pub(super) fn add(&mut self, at_ns: u64, subject: &Subject, gap: &Gap) {
        let span = BlindSpan {
            from_ns: at_ns,
            to_ns: None,
            why: gap.text.as_str().into(),
        };
        if gap.sensor == sexton_store::SENSOR {
            if self.lost.len() < MAX_SPANS && !self.lost.iter().any(|lost| lost.from_ns == at_ns) {
                self.lost.push(BlindSpan {
                    to_ns: Some(at_ns),
                    ..span
                });
            }
            return;
        }
        // Of one core, one cgroup, one file: the sensor as such still sees.
        if subject.kind != SubjectKind::Sensor {
            return;
        }
        let spans = self.by_sensor.entry(gap.sensor.to_string()).or_default();
        let is_known = spans
            .last()
            .is_some_and(|last| last.to_ns.is_none_or(|to| to >= at_ns));
        if !is_known && spans.len() < MAX_SPANS {
            spans.push(span);
        }
    }

    /// A sensor says something: it sees.
    pub(super) fn sees(&mut self, sensor: &str, at_ns: u64) {
        if let Some(spans) = self.by_sensor.get_mut(sensor)
            && let Some(last) = spans.last_mut()
            && last.to_ns.is_none()
            && last.from_ns < at_ns
        {
            last.to_ns = Some(at_ns);
        }
    }

    /// When any of these sensors saw nothing in a window; and what was lost.
    pub(crate) fn within<'a>(
        &'a self,
        sensors: &'a [&'a str],
        from_ns: u64,
        to_ns: u64,
    ) -> impl Iterator<Item = &'a BlindSpan> {
        let of_sensors = sensors
            .iter()
            .filter_map(|sensor| self.by_sensor.get(*sensor));
        let spans = of_sensors.flatten().chain(&self.lost);
        spans
            .filter(move |span| span.from_ns < to_ns && span.to_ns.is_none_or(|end| end >= from_ns))
    }
}
