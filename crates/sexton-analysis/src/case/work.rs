//! When a sensor was at work, and whether it saw anything.

use std::collections::HashMap;
use std::time::Duration;

use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};

/// A look that is late for less may still come.
const SILENT: Duration = Duration::from_secs(5);

/// The look that measured last, and two that did not: after one the next may.
const LOOKS: usize = 3;

/// What each sensor did.
#[derive(Debug, Default)]
pub(super) struct Work<'a>(HashMap<&'a str, Of>);

/// What one sensor did.
#[derive(Debug, Clone, Copy)]
struct Of {
    /// When it was first at work, and when its last look ended.
    first: Moment,
    last: Moment,
    /// When the last look began, and the shortest time between two: a longer one may be a hole.
    looked: Option<Moment>,
    beat: Option<Duration>,
    /// Whether it told anything of the node.
    has_told: bool,
    /// The last moment that it measured anything, and the longest time between two.
    measured: Option<(Moment, Duration)>,
    /// Looks from that one on.
    n_looks: usize,
}

impl<'a> Work<'a> {
    /// Of records in the order of time.
    pub(super) fn of(records: impl Iterator<Item = &'a Record>) -> Self {
        let mut work = Self::default();
        for record in records.filter(|record| record.fact().is_some()) {
            let of = work.0.entry(speaker(record)).or_insert(Of {
                first: record.at,
                last: record.at,
                looked: None,
                beat: None,
                has_told: false,
                measured: None,
                n_looks: 0,
            });
            of.note(record);
        }
        work
    }

    /// From when until when a sensor was at work.
    pub(super) fn span(&self, sensor: &str) -> Option<(Moment, Moment)> {
        self.0.get(sensor).map(|of| (of.first, of.last))
    }

    /// Whether a sensor was at work, and not only failed to see.
    pub(super) fn has_answered(&self, sensor: &str, gaps: &[(Moment, &Subject, &Gap)]) -> bool {
        let of = self.0.get(sensor);
        of.is_some_and(|of| of.has_told || !gaps.iter().any(|(_, _, gap)| fails(sensor, gap)))
    }

    /// Why a sensor that was at work sees nothing any more.
    pub(super) fn went_silent<'b>(
        &self,
        sensor: &str,
        gaps: &[(Moment, &'b Subject, &'b Gap)],
        now: Moment,
    ) -> Option<&'b Gap> {
        let of = self.0.get(sensor)?;
        let mut gaps = gaps.iter().rev();
        let found = gaps.find(|(at, about, gap)| of.ended(sensor, *at, about, gap, now));
        found.map(|(_, _, gap)| *gap)
    }
}

impl Of {
    fn note(&mut self, record: &Record) {
        self.first = self.first.min(record.at);
        if record.subject.kind == SubjectKind::Sensor {
            self.n_looks += 1;
            let before = self.looked.replace(record.at);
            let past = before.map(|before| record.at.since(before));
            let past = past.filter(|past| !past.is_zero());
            self.beat = self.beat.into_iter().chain(past).min();
            self.last = self.last.max(end_of_look(record));
            return;
        }
        self.last = self.last.max(record.at);
        self.has_told = true;
        if matches!(record.body, Body::Sample { .. }) {
            let between = self
                .measured
                .map(|(last, longest)| longest.max(record.at.since(last)));
            self.measured = Some((record.at, between.unwrap_or_default()));
            self.n_looks = 0;
        }
    }

    /// Whether this gap is its end: it looks no more, or sees nothing when it looks.
    fn ended(self, sensor: &str, at: Moment, about: &Subject, gap: &Gap, now: Moment) -> bool {
        if gap.sensor != sensor {
            return false;
        }
        let patience = match gap.why {
            Why::Bug => Some(SILENT),
            Why::Overrun => Some(SILENT.max(self.beat.unwrap_or_default() * 2)),
            _ => None,
        };
        let looks_no_more = about.kind == SubjectKind::Sensor
            && at >= self.last
            && patience.is_some_and(|patience| now.since(self.last) >= patience);
        let sees_no_more = || {
            let is_whole = matches!(about.kind, SubjectKind::Node | SubjectKind::Sensor);
            is_whole
                && fails(sensor, gap)
                && self.n_looks >= LOOKS
                && self.measured.is_some_and(|(last, longest)| {
                    at > last && now.since(last) >= SILENT.max(longest * 2)
                })
        };
        looks_no_more || sees_no_more()
    }
}

/// Whether a gap says that this sensor could not see what there is. What was lost was seen, and
/// what a kernel does not have is not there.
fn fails(sensor: &str, gap: &Gap) -> bool {
    gap.sensor == sensor && !matches!(gap.why, Why::Lost(_) | Why::Unsupported)
}

/// A look is recorded as of its beginning, with how long it took.
fn end_of_look(record: &Record) -> Moment {
    let took = record
        .value()
        .filter(|_| record.fact() == Some(&SEXTON_POLL_NS));
    let took = took.map_or(Duration::ZERO, |ns| Duration::from_nanos(ns as u64));
    record.at.after(took)
}

/// Which sensor a record is about: a poll is of the sensor that was polled, even where another noted it.
fn speaker(record: &Record) -> &str {
    match record.subject.kind {
        SubjectKind::Sensor => &record.subject.name,
        _ => record.sensor.as_ref(),
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::limit::LIMIT_USED_RATIO;
    use sexton_model::record::Sink;

    use super::*;
    use crate::rules;
    use crate::testing::{Watch, at};

    const LIMIT: &str = "kernel.pid_max";

    /// What one look of the sensor of limits came to.
    enum Look {
        Sees,
        Fails(Why, SubjectKind),
        Panics,
        /// It sees, but after 6 s, and was said to be late meanwhile.
        IsLate,
    }

    const DENIED: Look = Look::Fails(Why::Denied, SubjectKind::Node);

    /// Why limits are not judged after these looks, 10 s apart, in a watch that ends 8 s after the
    /// last.
    fn check(looks: &[Look], expected: Option<&str>) {
        let seconds = 10 * (looks.len() as u64 - 1) + 8;
        let mut watch = Watch::new(100, seconds).without("limits");
        for (i, look) in looks.iter().enumerate() {
            let mut out = Sink::new("limits", at(100 + 10 * i as u64));
            let own = Subject::new(SubjectKind::Sensor, "limits");
            match look {
                Look::IsLate => {
                    let late = Gap::new("limits", Why::Overrun, "it has not answered");
                    let mut beside = Sink::new("limits", at(102 + 10 * i as u64));
                    beside.gap(&own, late);
                    watch.add(beside);
                    out.sample(&own, &SEXTON_POLL_NS, 6e9);
                    watch.add(out);
                    continue;
                }
                Look::Sees => out.sample(
                    &Subject::new(SubjectKind::Limit, LIMIT),
                    &LIMIT_USED_RATIO,
                    0.1,
                ),
                Look::Fails(why, kind) => out.gap(
                    &Subject::new(*kind, LIMIT),
                    Gap::new("limits", why.clone(), "it cannot be read"),
                ),
                Look::Panics => {
                    out.gap(&own, Gap::new("limits", Why::Bug, "it panicked"));
                    watch.add(out);
                    continue;
                }
            }
            out.sample(&own, &SEXTON_POLL_NS, 1.0);
            watch.add(out);
        }
        let rule = rules::by_code("LIM001").expect("a rule");
        let told = watch.judge(rule);
        let why = told.not_judged.first().map(|told| told.because.as_str());
        assert_eq!(why, expected);
    }

    #[test]
    fn who_only_says_why_it_cannot_see_was_not_at_work() {
        check(&[DENIED, DENIED], Some("it cannot be read"));
        let one = || Look::Fails(Why::Denied, SubjectKind::Limit);
        check(&[one(), one()], Some("it cannot be read"));
        // What a kernel does not have is no blind spot.
        let absent = || Look::Fails(Why::Unsupported, SubjectKind::Limit);
        check(&[absent(), absent()], None);
        check(&[Look::Sees, Look::Sees], None);
    }

    #[test]
    fn who_answered_once_and_fails_since_sees_nothing_any_more() {
        check(&[Look::Sees, DENIED, DENIED], Some("it cannot be read"));
        check(
            &[Look::Sees, Look::Sees, DENIED, DENIED],
            Some("it cannot be read"),
        );
    }

    #[test]
    fn one_look_that_fails_among_others_blinds_nobody() {
        check(&[Look::Sees, DENIED, Look::Sees], None);
        check(&[Look::Sees, Look::Sees, DENIED], None);
        let part = || Look::Fails(Why::Vanished, SubjectKind::Limit);
        check(&[Look::Sees, part(), part()], None);
    }

    #[test]
    fn who_was_late_and_answered_is_not_silent() {
        check(&[Look::Sees, Look::IsLate], None);
        check(&[Look::Sees, Look::IsLate, Look::Sees], None);
    }

    #[test]
    fn who_panicked_looks_no_more() {
        let looks = [Look::Sees, Look::Panics, Look::Panics];
        check(&looks, Some("it panicked"));
        check(&[Look::Sees, Look::Panics, Look::Sees], None);
    }
}
