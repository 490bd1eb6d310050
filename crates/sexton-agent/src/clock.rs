//! Watches the wall clock against the clock of the recording.

use std::time::Duration;

use sexton_model::fact::sexton::{ClockJump, SEXTON_CLOCK_JUMP, SEXTON_WALL_CLOCK_NS};
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::Subject;

/// How often the wall clock is noted when it runs true.
const EVERY: Duration = Duration::from_secs(60);

/// A wall clock that moved by more than this against ours was set. Slower ways to
/// correct it (adjtime) stay far below that between two looks.
const JUMP: Duration = Duration::from_millis(500);

/// Notes what the wall clock says, and when it was set.
#[derive(Debug, Default)]
pub struct ClockWatch {
    last: Option<(Moment, u64)>,
    noted: Option<Moment>,
}

impl ClockWatch {
    /// Compares the two clocks, which were read together.
    pub fn look(&mut self, now: Moment, wall_ns: u64) -> Vec<Record> {
        let mut out = Sink::new("clock", now);
        let moved = self.last.map_or(0, |last| moved_ns(last, (now, wall_ns)));
        if moved.unsigned_abs() > JUMP.as_nanos() as u64 {
            let jump = ClockJump {
                moved_ns: Some(moved),
                wall_ns: Some(wall_ns),
            };
            out.event(now, &Subject::node(), &SEXTON_CLOCK_JUMP, jump);
            self.noted = None;
        }
        if self.noted.is_none_or(|noted| now.since(noted) >= EVERY) {
            out.sample(&Subject::node(), &SEXTON_WALL_CLOCK_NS, wall_ns as f64);
            self.noted = Some(now);
        }
        self.last = Some((now, wall_ns));
        out.into_records()
    }
}

/// By how much the wall clock moved more than ours did.
fn moved_ns((then, wall_then): (Moment, u64), (now, wall_now): (Moment, u64)) -> i64 {
    let ours = now.since(then).as_nanos() as i128;
    let walls = i128::from(wall_now) - i128::from(wall_then);
    i64::try_from(walls - ours).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Looks at these (ours, wall) seconds; expects these facts.
    fn check(looks: &[(u64, u64)], expected: &[&str]) {
        let mut watch = ClockWatch::default();
        let mut found = Vec::new();
        for (ours, wall) in looks {
            let records = watch.look(Moment::from_ns(ours * SECOND), wall * SECOND);
            found.extend(
                records
                    .iter()
                    .filter_map(|record| Some(record.fact()?.name)),
            );
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_true_clock_is_noted_once_a_minute() {
        let looks: Vec<(u64, u64)> = (0..90).map(|i| (100 + i, 5000 + i)).collect();
        check(&looks, &["sexton_wall_clock_ns", "sexton_wall_clock_ns"]);
    }

    #[test]
    fn a_jump_is_an_event_and_is_noted_at_once() {
        let wall = "sexton_wall_clock_ns";
        check(
            &[(100, 5000), (101, 5001), (102, 9000)],
            &[wall, "sexton_clock_jump", wall],
        );
        check(
            &[(100, 5000), (101, 4000)],
            &[wall, "sexton_clock_jump", wall],
        );
    }
}
