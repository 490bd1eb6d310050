//! Times as schedulers write them.

use std::str::FromStr;

use sexton_model::wall::unix_ns;

/// How far local time is ahead of UTC, in minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offset(i64);

impl FromStr for Offset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an offset: write +02:00 or -0530");
        let (sign, rest) = match text.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return Err(wrong()),
        };
        let digits: String = rest.chars().filter(|c| *c != ':').collect();
        if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: i64 = digits.parse().map_err(|_| wrong())?;
        let (hours, minutes) = (number / 100, number % 100);
        if hours > 14 || minutes > 59 {
            return Err(wrong());
        }
        Ok(Self(sign * (hours * 60 + minutes)))
    }
}

const US_PER_SECOND: i64 = 1_000_000;
/// Numbers from here on are milliseconds: as seconds they would be the year 5138.
const LARGEST_SECONDS: f64 = 1e11;

/// Microseconds since 1970 of `2026-11-18T13:00:00Z`, `2026-11-18 13:00:00.5+02:00`, or of a number of
/// seconds or milliseconds. A time without a zone is local, `offset` ahead of UTC.
pub(super) fn us_of(text: &str, offset: Offset) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return us_of_number(number);
    }
    let (date, time) = text.split_once(['T', ' '])?;
    let zone_at = time.find(['Z', 'z', '+', '-']);
    let (time, zone) = time.split_at(zone_at.unwrap_or(time.len()));
    let Offset(minutes) = match zone {
        "" => offset,
        "Z" | "z" => Offset::default(),
        zone => zone.parse().ok()?,
    };
    let ns = unix_ns(&format!("{date}T{}Z", time.trim()))?;
    let us = i64::try_from(ns / 1000).ok()?;
    Some(us - minutes * 60 * US_PER_SECOND)
}

/// Microseconds of a number of seconds or milliseconds since 1970.
pub(super) fn us_of_number(number: f64) -> Option<i64> {
    let seconds = match number {
        n if !n.is_finite() || n <= 0.0 || n >= 1000.0 * LARGEST_SECONDS => return None,
        n if n >= LARGEST_SECONDS => n / 1000.0,
        n => n,
    };
    Some((seconds * US_PER_SECOND as f64).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        const AT: i64 = 1_794_959_999_000_000; // date -u -d 2026-11-17T23:59:59 +%s
        let check = |text: &str, expected| {
            assert_eq!(us_of(text, Offset::default()), expected, "{text}");
        };
        check("2026-11-17T23:59:59", Some(AT));
        check("2026-11-17 23:59:59Z", Some(AT));
        check("2026-11-18T01:59:59+02:00", Some(AT));
        check("2026-11-17T18:29:59.5-0530", Some(AT + 500_000));
        check("1794959999", Some(AT));
        check("1794959999000", Some(AT));
        for text in [
            "Unknown",
            "None",
            "",
            "2026-11-17",
            "2026-11-17T25:00:00",
            "-1",
            "NaN",
            "1e300",
        ] {
            check(text, None);
        }
        let berlin = "+01:00".parse().unwrap();
        assert_eq!(us_of("2026-11-18T00:59:59", berlin), Some(AT));
        assert_eq!(us_of("2026-11-17T23:59:59Z", berlin), Some(AT));
        for text in ["", "02:00", "+2", "+99:00", "+é:00"] {
            assert!(text.parse::<Offset>().is_err(), "{text}");
        }
    }
}
