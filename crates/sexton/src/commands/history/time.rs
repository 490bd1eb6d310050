//! Times of day as people write them, in UTC.

use sexton_model::moment::Moment;
use sexton_model::wall::{WallClock, unix_ns};

const DAY_NS: u64 = 86_400_000_000_000;

/// A time as it is shown: `2026-11-18 03:12:30Z`.
pub fn shown(wall_ns: u64) -> String {
    let at = Moment::from_ns(0);
    let text = WallClock::new(vec![(at, wall_ns)]).rfc3339(at);
    let text = text.unwrap_or_default().replace('T', " ");
    text.split('.')
        .next()
        .map_or(text.clone(), |text| format!("{text}Z"))
}

/// Reads `03:12`, `03:12:30`, `2026-11-18 03:12` or RFC 3339, in UTC. A time without a date is
/// the last one that has been.
pub fn of_day(text: &str, now_ns: u64) -> Result<u64, String> {
    let wrong = || {
        format!(
            "{text:?} is no time: write 03:12, \"2026-11-18 03:12\" or 2026-11-18T03:12:30Z (UTC)"
        )
    };
    let given = text.trim().trim_end_matches('Z').replace(' ', "T");
    let (date, time) = match given.split_once('T') {
        Some((date, time)) => (Some(date.to_owned()), time.to_owned()),
        None => (None, given),
    };
    let time = match time.matches(':').count() {
        1 => format!("{time}:00"),
        _ => time,
    };
    let today = shown(now_ns)[..10].to_owned();
    let date_given = date.clone().unwrap_or(today);
    let at = unix_ns(&format!("{date_given}T{time}Z")).ok_or_else(wrong)?;
    match date.is_none() && at > now_ns {
        true => Ok(at.saturating_sub(DAY_NS)),
        false => Ok(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let now = unix_ns("2026-11-18T10:00:00Z").expect("a time");
        assert_eq!(
            of_day(text, now).map(shown),
            Ok(expected.to_owned()),
            "{text}"
        );
    }

    #[test]
    fn a_time_is_the_last_one_that_has_been() {
        check("03:12", "2026-11-18 03:12:00Z");
        check("23:59:30", "2026-11-17 23:59:30Z");
        check("2026-11-16 04:00", "2026-11-16 04:00:00Z");
        check("2026-11-16T04:00:07Z", "2026-11-16 04:00:07Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "noon", "3", "25:00", "2026-13-01 00:00"] {
            assert!(of_day(text, 1_800_000_000_000_000_000).is_err(), "{text}");
        }
    }
}
