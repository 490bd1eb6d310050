//! When a line was written.
//!
//! Lines carry a clock of the scheduler, which runs about as `CLOCK_MONOTONIC` does but
//! is not disciplined with it, and stands still while the machine sleeps. So the time of
//! a line has an error, which is told with it. Of a line that was not there at the last
//! look we know more: it was written since.

use std::time::Duration;

use sexton_model::moment::Moment;

/// The kernel steers its clock by at most so much: one part in two thousand.
const STEERED_BY: u64 = 2_000;

/// The clocks, read at one time, to place lines that were read until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clocks {
    /// Now, time asleep included.
    pub(super) now: Moment,
    /// Now, without the time asleep.
    pub(super) awake_ns: u64,
    /// When there was last nothing more to read. Lines read since were written since.
    pub(super) since: Option<Moment>,
}

impl Clocks {
    /// When a line was written, and how far off that may be, in nanoseconds.
    pub(super) fn place(&self, us: u64) -> (Moment, u64) {
        let written_ns = us.saturating_mul(1_000);
        let age_ns = self.awake_ns.saturating_sub(written_ns);
        let at = Moment::from_ns(self.now.as_ns().saturating_sub(age_ns));
        let asleep_ns = self.now.as_ns().saturating_sub(self.awake_ns);
        let error_ns = asleep_ns + self.awake_ns / STEERED_BY;
        match self.since {
            None => (at, error_ns),
            Some(since) => {
                let window = self.now.since(since);
                (
                    at.clamp(since, since.after(window)),
                    error_ns.min(ns(window)),
                )
            }
        }
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn check(now: u64, awake: u64, since: Option<u64>, us: u64, expected: (u64, u64)) {
        let clocks = Clocks {
            now: Moment::from_ns(now),
            awake_ns: awake,
            since: since.map(Moment::from_ns),
        };
        let (at, error) = clocks.place(us);
        assert_eq!((at.as_ns(), error), expected);
    }

    #[test]
    fn old_lines_are_placed_by_their_clock() {
        check(100 * S, 100 * S, None, 40_000_000, (40 * S, S / 20));
    }

    #[test]
    fn sleep_makes_the_time_of_old_lines_unsure() {
        check(
            160 * S,
            100 * S,
            None,
            99_000_000,
            (159 * S, 60 * S + S / 20),
        );
    }

    #[test]
    fn new_lines_were_written_since_the_last_look() {
        let since = Some(99 * S);
        check(
            100 * S,
            100 * S,
            since,
            99_500_000,
            (99 * S + S / 2, S / 20),
        );
        check(100 * S, 100 * S, since, 98_000_000, (99 * S, S / 20));
        check(100 * S, 100 * S, since, 101_000_000, (100 * S, S / 20));
        check(
            9_000 * S,
            9_000 * S,
            Some(8_999 * S),
            8_999_400_000,
            (8_999 * S + 400_000_000, S),
        );
        check(100 * S, 100 * S, Some(200 * S), 1, (200 * S, 0));
        check(0, 0, None, u64::MAX, (0, 0));
    }
}
