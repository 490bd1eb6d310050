//! Figures as people say them.

use std::time::Duration;

pub(crate) use sexton_model::figures::{count as plural, number as count};
use sexton_model::moment::Moment;

/// `38 us`, `870 ms`, `4.2 s`, `3 min`, `5 h`, `2 days`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 0.001 => format!("{:.0} us", s * 1e6),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 119.5 => format!("{s:.0} s"),
        s if s < 119.5 * 60.0 => format!("{:.0} min", s / 60.0),
        s if s < 47.5 * 3600.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// The same, of nanoseconds.
pub(crate) fn time_ns(ns: f64) -> String {
    time(Duration::from_nanos(ns.max(0.0) as u64))
}

/// How long something was seen: `28 s`, or `28 s (all of the watch)` where the watch ended it or
/// began in it, so that it may have been longer.
pub(crate) fn seen_for(length: Duration, watched: Duration) -> String {
    let part = length.as_secs_f64() / watched.as_secs_f64().max(f64::MIN_POSITIVE);
    let is_all = (0.9..=1.1).contains(&part);
    match is_all && !watched.is_zero() {
        true => format!("{} (all of the watch)", time(length)),
        false => time(length),
    }
}

/// `97 %`; what is less than one and not nothing keeps a digit.
pub(crate) fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match percent {
        p if p > 0.0 && p < 0.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// `48.3 MiB`, `1 GiB`, `1.5 GiB`.
pub(crate) fn bytes(bytes: f64) -> String {
    sexton_model::figures::bytes(bytes.max(0.0) as u64)
}

/// `+2,200/h`, `+10,500/h`: two digits, because it is reckoned from a short watch; three where
/// the first is 1, so that rounding changes no rate by more than a fiftieth.
pub(crate) fn per_hour(per_second: f64) -> String {
    let rate = (per_second * 3600.0).max(0.0).round();
    let digits = rate.max(1.0).log10().floor() as i32;
    let is_low = rate < 2.0 * 10_f64.powi(digits);
    let kept = if is_low { 2 } else { 1 };
    let step = 10_f64.powi((digits - kept).max(0));
    format!("+{}/h", count(((rate / step).round() * step) as u64))
}

/// How often something happens, of `n` times in a span: `every 1.4 s`.
pub(crate) fn every(n: u64, span: Duration) -> String {
    let each = span.as_secs_f64() / n.max(1) as f64;
    format!("every {}", time(Duration::from_secs_f64(each)))
}

/// `once`, `twice`, `3 times`.
pub(crate) fn times(n: usize) -> String {
    match n {
        1 => "once".into(),
        2 => "twice".into(),
        n => format!("{} times", count(n as u64)),
    }
}

/// How long before the end of the watch: `2 h before the end of the watch`.
pub(crate) fn before(now: Moment, at: Moment) -> String {
    format!("{} before the end of the watch", time(now.since(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let check = |seconds: f64, said: &str| {
            assert_eq!(time(Duration::from_secs_f64(seconds)), said);
        };
        check(0.000_012, "12 us");
        check(0.87, "870 ms");
        check(4.21, "4.2 s");
        check(28.0, "28 s");
        check(200.0, "3 min");
        check(7_300.0, "2 h");
        check(864_000.0, "10 days");
        let seen =
            |length, watched| seen_for(Duration::from_secs(length), Duration::from_secs(watched));
        assert_eq!(seen(28, 30), "28 s (all of the watch)");
        assert_eq!(seen(12, 30), "12 s");
        assert_eq!(seen(12, 0), "12 s");
    }

    #[test]
    fn counts_and_parts_too() {
        assert_eq!(count(68_440), "68,440");
        assert_eq!(count(240), "240");
        assert_eq!(percent(0.967), "97 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(per_hour(10_510.0 / 3600.0), "+10,500/h");
        assert_eq!(per_hour(2_232.0 / 3600.0), "+2,200/h");
        assert_eq!(
            (per_hour(0.0), per_hour(7.0 / 3600.0)),
            ("+0/h".into(), "+7/h".into())
        );
        assert_eq!(
            (times(1), times(2), times(3)),
            ("once".into(), "twice".into(), "3 times".into())
        );
    }
}
