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

/// The date of a day since 1970-01-01, as `2026-11-18`.
pub fn date_of_day(day: i64) -> String {
    let (year, month, day) = civil(i128::from(day));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Nanoseconds since 1970 of a time in RFC 3339 and UTC, `2026-11-16T13:52:07.25Z`; `None` for
/// any other text, and for times before 1970, by which some say that there was none.
pub fn unix_ns(rfc3339: &str) -> Option<u64> {
    let (date, time) = rfc3339.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && year <= 9999;
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let is_digits = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !is_date || !is_time || !is_digits {
        return None;
    }
    let ns: i128 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    u64::try_from(seconds * NS_PER_SECOND + ns).ok()
}

fn numbers(text: &str, between: char) -> Option<[i128; 3]> {
    let is_digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.split(between).filter(is_digits);
    let numbers: Vec<i128> = parts.filter_map(|part| part.parse().ok()).collect();
    numbers.try_into().ok()
}

/// The day since 1970-01-01 of a date: what [`civil`] undoes.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let year = year - i128::from(month <= 2);
    let from_march = (month + 9) % 12;
    let of_era = year.rem_euclid(400);
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    year.div_euclid(400) * 146_097 + days - 719_468
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
    fn a_time_is_read_as_it_is_written() {
        for day in (0..60_000).step_by(37) {
            let ns = (day * 86_400 + 45_296) * NS_PER_SECOND + 7_000_000;
            assert_eq!(unix_ns(&rfc3339(ns)), u64::try_from(ns).ok());
        }
        let check = |text: &str, expected: Option<u64>| assert_eq!(unix_ns(text), expected);
        check("1970-01-01T00:00:01Z", Some(1_000_000_000));
        check("1970-01-01T00:00:00.000000042Z", Some(42));
        check("1970-01-01T00:00:00.25Z", Some(250_000_000));
        // What Docker says of a container that has not ended yet.
        check("0001-01-01T00:00:00Z", None);
        for text in [
            "",
            "Z",
            "T",
            "1970-01-01",
            "1970-13-01T00:00:00Z",
            "1970-01-01T00:00:00+01:00",
        ] {
            check(text, None);
        }
        check("1970-01-01T00:00:00.+25Z", None);
        check("99999999999999999999-01-01T00:00:00Z", None);
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
