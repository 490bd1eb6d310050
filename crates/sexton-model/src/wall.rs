//! What the wall clock said, as it was recorded. Nothing here reads a clock.

use crate::fact::sexton::SEXTON_WALL_CLOCK_NS;
use crate::moment::Moment;
use crate::timeline::Timeline;

const NS_PER_SECOND: i128 = 1_000_000_000;

/// The wall clock of a recording: what it said at some of its moments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WallClock {
    /// In the order of time.
    noted: Vec<(Moment, u64)>,
}

impl WallClock {
    /// From what it said, in nanoseconds since 1970, in whatever order.
    pub fn new(mut noted: Vec<(Moment, u64)>) -> Self {
        noted.sort_unstable();
        Self { noted }
    }

    /// As a recording noted it.
    pub fn of(timeline: &dyn Timeline) -> Self {
        let noted = timeline.of(&SEXTON_WALL_CLOCK_NS);
        Self::new(
            noted
                .filter_map(|record| Some((record.at, record.value()? as u64)))
                .collect(),
        )
    }

    /// Nanoseconds since 1970 at a moment; `None` when the clock was never noted. A moment
    /// before the first note is told by that one: a clock that was set in between shows the
    /// time as it is now known to have been.
    pub fn ns(&self, moment: Moment) -> Option<i128> {
        let after = self.noted.partition_point(|(at, _)| *at <= moment);
        let (at, wall_ns) = self.noted.get(after.saturating_sub(1))?;
        Some(i128::from(*wall_ns) + i128::from(moment.as_ns()) - i128::from(at.as_ns()))
    }

    /// A moment as RFC 3339 in UTC, to the millisecond.
    pub fn rfc3339(&self, moment: Moment) -> Option<String> {
        self.ns(moment).map(rfc3339)
    }
}

fn rfc3339(ns: i128) -> String {
    let seconds = ns.div_euclid(NS_PER_SECOND);
    let ms = ns.rem_euclid(NS_PER_SECOND) / 1_000_000;
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// The date of a day since 1970-01-01, by counting years from March: leap days then come
/// last in a year, and 400 years are one period of 146,097 days.
fn civil(days: i128) -> (i128, i128, i128) {
    let from_era = days + 719_468;
    let era = from_era.div_euclid(146_097);
    let of_era = from_era.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // By `date -u -d @N +%FT%T`.
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_799, "2000-02-29T23:59:59.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (1_735_689_600, "2025-01-01T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(rfc3339(seconds * NS_PER_SECOND), shown);
        }
    }

    #[test]
    fn a_moment_is_told_by_the_last_note_before_it() {
        let second = 1_000_000_000;
        let at = |s: u64| Moment::from_ns(s * second);
        let clock = WallClock::new(vec![(at(100), 5000 * second), (at(50), 1000 * second)]);
        for (moment, seconds) in [(40, 990), (50, 1000), (99, 1049), (100, 5000), (130, 5030)] {
            assert_eq!(
                clock.ns(at(moment)),
                Some(seconds * NS_PER_SECOND),
                "{moment}"
            );
        }
        assert_eq!(WallClock::default().ns(at(1)), None);
    }
}
