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
    /// It told of the node, and may have told more at that look.
    is_of_node: bool,
}

/// Such times of all sensors.
#[derive(Debug, Default)]
pub(crate) struct Blind {
    by_sensor: BTreeMap<String, Vec<BlindSpan>>,
    /// When each sensor last told something that it saw.
    seen_ns: BTreeMap<String, u64>,
    /// What the store lost, which is of everybody.
    lost: Vec<BlindSpan>,
}

impl Blind {
    pub(super) fn add(&mut self, at_ns: u64, subject: &Subject, gap: &Gap) {
        let span = BlindSpan {
            from_ns: at_ns,
            to_ns: None,
            why: gap.text.as_str().into(),
            is_of_node: subject.kind == SubjectKind::Node,
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
        if !matches!(subject.kind, SubjectKind::Sensor | SubjectKind::Node) {
            return;
        }
        // Of the node, and at that look it told what it saw: that was less, not nothing.
        let sensor: &str = &gap.sensor;
        if span.is_of_node && self.seen_ns.get(sensor) == Some(&at_ns) {
            return;
        }
        let spans = self.by_sensor.entry(sensor.to_owned()).or_default();
        let is_known = spans
            .last()
            .is_some_and(|last| last.to_ns.is_none_or(|to| to >= at_ns));
        if !is_known && spans.len() < MAX_SPANS {
            spans.push(span);
        }
    }

    /// A sensor says something: it sees.
    pub(super) fn sees(&mut self, sensor: &str, at_ns: u64) {
        match self.seen_ns.get_mut(sensor) {
            Some(seen_ns) => *seen_ns = (*seen_ns).max(at_ns),
            None => drop(self.seen_ns.insert(sensor.to_owned(), at_ns)),
        }
        let Some(spans) = self.by_sensor.get_mut(sensor) else {
            return;
        };
        let Some(last) = spans.last_mut().filter(|last| last.to_ns.is_none()) else {
            return;
        };
        if last.from_ns < at_ns {
            last.to_ns = Some(at_ns);
        } else if last.is_of_node && last.from_ns == at_ns {
            spans.pop();
        }
    }

    /// Whether all these sensors saw nothing in all of a time. Who said nothing at all,
    /// neither what it saw nor that it did not, was not there.
    pub(crate) fn is_whole(&self, sensors: &[&str], from_ns: u64, to_ns: u64) -> bool {
        let is_blind = |sensor: &&str| {
            let Some(spans) = self.by_sensor.get(*sensor) else {
                return !self.has_seen(sensor);
            };
            let n = spans.partition_point(|span| span.from_ns <= from_ns);
            let before = n.checked_sub(1).and_then(|n| spans.get(n));
            let blind = before.is_some_and(|span| span.to_ns.is_none_or(|end| end >= to_ns));
            blind || !self.has_seen(sensor)
        };
        !sensors.is_empty() && sensors.iter().all(is_blind)
    }

    /// Whether a sensor ever told something that it saw.
    pub(crate) fn has_seen(&self, sensor: &str) -> bool {
        self.seen_ns.contains_key(sensor)
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

#[cfg(test)]
mod tests {
    use sexton_model::gap::Why;

    use super::*;

    /// What is told, in the order of time: by a sensor of itself, by one of the node, or
    /// something that it saw.
    fn blind(told: &[(u64, &str)]) -> Blind {
        let mut blind = Blind::default();
        for (at_ns, what) in told {
            let gap = Gap::new("containers", Why::Unsupported, "nobody answers");
            match *what {
                "sensor" => blind.add(
                    *at_ns,
                    &Subject::new(SubjectKind::Sensor, "containers"),
                    &gap,
                ),
                "node" => blind.add(*at_ns, &Subject::node(), &gap),
                "cpu" => blind.add(*at_ns, &Subject::cpu(1), &gap),
                _ => blind.sees("containers", *at_ns),
            }
        }
        blind
    }

    #[track_caller]
    fn check(told: &[(u64, &str)], expected: &[(u64, Option<u64>)]) {
        let blind = blind(told);
        let spans = blind.within(&["containers"], 0, 1000);
        let spans: Vec<_> = spans.map(|span| (span.from_ns, span.to_ns)).collect();
        assert_eq!(spans, expected, "{told:?}");
    }

    #[test]
    fn a_sensor_is_blind_until_it_sees() {
        check(&[(5, "sensor"), (9, "sees")], &[(5, Some(9))]);
        check(&[(5, "node"), (9, "node")], &[(5, None)]);
        check(&[(5, "cpu")], &[]);
    }

    #[test]
    fn who_tells_less_is_not_blind() {
        check(&[(5, "node"), (5, "sees")], &[]);
        check(&[(5, "sees"), (5, "node")], &[]);
        check(&[(5, "sees"), (6, "node"), (7, "sees")], &[(6, Some(7))]);
    }

    #[test]
    fn who_said_nothing_was_not_there() {
        let one = |told: &[(u64, &str)], from, to| blind(told).is_whole(&["containers"], from, to);
        assert!(one(&[], 0, 10));
        assert!(!one(&[(5, "sees")], 0, 10));
        assert!(one(&[(5, "sees"), (6, "sensor")], 7, 10));
        assert!(!one(&[(5, "sees"), (6, "sensor")], 5, 10));
        assert!(!one(&[(6, "sensor"), (8, "sees")], 7, 10));
        let told = blind(&[(5, "sees")]);
        assert!(!told.is_whole(&["containers", "nics"], 0, 10));
        assert!(!told.is_whole(&[], 0, 10));
    }
}
