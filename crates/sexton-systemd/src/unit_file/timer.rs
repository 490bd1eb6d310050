//! How often a timer starts its unit: each start makes a memory cgroup.
//!
//! Times of the calendar are written as systemd.time(7) says: weekdays, date, time, zone.

use crate::unit_file::settings::Settings;
use crate::unit_file::span;

const DAY_SECONDS: f64 = 86_400.0;
const YEAR_DAYS: f64 = 365.25;

/// How often.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// Starts a day, at most: a start that takes longer than the time to the next, or an
    /// `AccuracySec=` that puts two together, makes it fewer.
    pub per_day: f64,
    /// The settings that say so: `OnCalendar=*:0/10`.
    pub by: String,
}

/// Of a timer's settings. `None` if it starts nothing again and again, as one that only
/// counts from the boot, or if what it says cannot be read.
pub fn rate(settings: &Settings) -> Option<Rate> {
    let mut per_day = 0.0;
    let mut by = Vec::new();
    let mut add = |key: &str, value: &str, found: Option<f64>| {
        if let Some(found) = found.filter(|found| *found > 0.0) {
            per_day += found;
            by.push(format!("{key}={value}"));
        }
    };
    for value in settings.lines("Timer", "OnCalendar") {
        add("OnCalendar", value, calendar(value));
    }
    for key in ["OnUnitActiveSec", "OnUnitInactiveSec"] {
        for value in settings.lines("Timer", key) {
            // Nothing is faster than once a second: systemd's timers wait at least so long.
            let seconds = span::parse_ns(value).map(|ns| (ns as f64 / 1e9).max(1.0));
            add(key, value, seconds.map(|seconds| DAY_SECONDS / seconds));
        }
    }
    let by = by.join(" ");
    (per_day > 0.0).then_some(Rate { per_day, by })
}

/// Whether a timer can ever start its unit: systemd refuses one of which no setting can be read.
pub fn elapses(settings: &Settings) -> bool {
    let spans = [
        "OnActiveSec",
        "OnBootSec",
        "OnStartupSec",
        "OnUnitActiveSec",
        "OnUnitInactiveSec",
    ];
    let is_span = |value: &&str| span::parse_ns(value).is_some() || value.contains('%');
    let has_span = |key: &&str| settings.lines("Timer", key).iter().any(is_span);
    let is_time = |value: &&str| calendar(value).is_some() || value.contains(['@', '%']);
    spans.iter().any(has_span)
        || settings.lines("Timer", "OnCalendar").iter().any(is_time)
        || settings.is_true("Timer", "OnClockChange")
        || settings.is_true("Timer", "OnTimezoneChange")
}

/// How often a day a time of the calendar comes, over the years; `None` if it cannot be read.
fn calendar(text: &str) -> Option<f64> {
    short(text).or_else(|| match text.rsplit_once(' ') {
        // A zone of time moves the start and does not change how often it comes.
        Some((rest, zone)) if is_zone(zone) => short(rest).or_else(|| written(rest)),
        _ => written(text),
    })
}

/// Words for the most common times.
fn short(text: &str) -> Option<f64> {
    let days_a_year = match text.trim().to_ascii_lowercase().as_str() {
        "minutely" => return Some(1_440.0),
        "hourly" => return Some(24.0),
        "daily" => return Some(1.0),
        "weekly" => return Some(1.0 / 7.0),
        "monthly" => 12.0,
        "quarterly" => 4.0,
        "semiannually" | "semi-annually" | "biannually" | "bi-annually" => 2.0,
        "yearly" | "annually" | "anually" => 1.0,
        _ => return None,
    };
    Some(days_a_year / YEAR_DAYS)
}

/// `UTC`, `Europe/Berlin`, `CET`: no name of a day.
fn is_zone(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && n_weekdays(word).is_none()
}

/// `Mon..Fri *-*-* 08:00:00`, each part but one of which may be left out.
fn written(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().peekable();
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_date = |word: &&str| !word.contains(':') && word.contains(['-', '~']);
    words.peek()?;
    let weekdays = match words.next_if(is_name) {
        Some(word) => f64::from(n_weekdays(word)?) / 7.0,
        None => 1.0,
    };
    let days = words.next_if(is_date).map_or(Some(1.0), date)?;
    let times = words.next().map_or(Some(1.0), time)?;
    words.next().is_none().then_some(weekdays * days * times)
}

/// `08:00`, `*:0/10`, `*:*:00/30`: how often on one day.
fn time(word: &str) -> Option<f64> {
    let mut parts = word.split(':');
    let (hours, minutes) = (parts.next()?, parts.next()?);
    let seconds = parts.next().unwrap_or("0");
    let none = parts.next().is_none();
    let n = values(hours, 0.0, 23.0)? * values(minutes, 0.0, 59.0)? * values(seconds, 0.0, 59.0)?;
    none.then_some(n)
}

/// `*-*-1`, `*-1,4-01`, `2030-01-01`, `*-02~01`: on how many of all days. A year that is
/// named comes once.
fn date(word: &str) -> Option<f64> {
    let word = word.replace('~', "-");
    let mut parts = word.rsplit('-');
    let (day, month) = (parts.next()?, parts.next()?);
    let is_once = parts.next().is_some_and(|year| !year.starts_with('*'));
    let (n_days, n_months) = (values(day, 1.0, 31.0)?, values(month, 1.0, 12.0)?);
    Some(match is_once {
        true => 0.0,
        false => (n_days * n_months / YEAR_DAYS).min(1.0),
    })
}

/// How many values `*`, `1,3`, `1..5` or `0/10` has between two bounds.
fn values(text: &str, least: f64, most: f64) -> Option<f64> {
    let mut n = 0.0;
    for item in text.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<f64>().ok()?)),
            None => (item, None),
        };
        let (from, to) = match range.split_once("..") {
            Some((from, to)) => (from.parse().ok()?, to.parse::<f64>().ok()?.min(most)),
            // systemd takes no step behind a star.
            None if range == "*" && step.is_none() => (least, most),
            None => {
                let from = range.parse::<f64>().ok()?;
                // A value alone is one; with a step it goes on to the end.
                (from, if step.is_some() { most } else { from })
            }
        };
        let step = step.unwrap_or(1.0);
        if !(from >= least && from <= most && to >= from && step > 0.0) {
            return None;
        }
        // Seconds may have parts; the last one before the next minute counts too.
        let room = if step.fract() == 0.0 {
            to
        } else {
            to + 0.999_999
        };
        n += ((room - from) / step).floor() + 1.0;
    }
    Some(n.min((most - least + 1.0) * 1_000.0))
}

/// `Mon`, `Mon,Fri`, `Mon..Fri`, `Sat-Sun` of old.
fn n_weekdays(word: &str) -> Option<u32> {
    const NAMES: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let day = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is_it = |day: &&str| name == **day || name == day[..3];
        NAMES.iter().position(is_it)
    };
    let mut is_in = [false; 7];
    for item in word.split(',').filter(|item| !item.is_empty()) {
        let ends = item.split_once("..").or_else(|| item.split_once('-'));
        let (from, to) = match ends {
            Some((from, to)) => (day(from)?, day(to)?),
            None => (day(item)?, day(item)?),
        };
        // No version of systemd goes on over the end of the week.
        if to < from {
            return None;
        }
        is_in[from..=to].fill(true);
    }
    u32::try_from(is_in.iter().filter(|day| **day).count()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, per_day: Option<f64>) {
        let found = rate(&Settings::parse(&format!("[Timer]\n{text}\n")));
        let rounded = found.map(|rate| (rate.per_day * 1_000.0).round() / 1_000.0);
        assert_eq!(rounded, per_day, "{text}");
    }

    #[test]
    fn rates() {
        check("OnCalendar=*:0/10", Some(144.0));
        check("OnCalendar=*:00/10", Some(144.0));
        check(
            "OnCalendar=*-*-* 6,18:00\nRandomizedDelaySec=12h",
            Some(2.0),
        );
        check("OnCalendar=minutely", Some(1_440.0));
        check("OnCalendar=*:*:0/30", Some(2_880.0));
        check("OnCalendar=daily\nOnCalendar=hourly", Some(25.0));
        check("OnCalendar=daily\nOnCalendar=", None);
        check("OnCalendar=Mon..Fri 08:00 Europe/Berlin", Some(0.714));
        check("OnCalendar=Fri..Sun *-*-* 00:00:00 UTC", Some(0.429));
        check("OnCalendar=Sat..Mon *-*-* 00:00:00 UTC", None);
        check("OnCalendar=*-*-1 00:00", Some(0.033));
        check("OnCalendar=2030-01-01 00:00", None);
        check("OnCalendar=Sun", Some(0.143));
        check("OnUnitActiveSec=10min", Some(144.0));
        check("OnBootSec=5min\nOnUnitInactiveSec=1h", Some(24.0));
        check("OnUnitActiveSec=0", Some(86_400.0));
        check("OnBootSec=15min", None);
        check("OnCalendar=*:0/0", None);
        check("OnCalendar=soon", None);
        check("OnCalendar=", None);
    }

    /// systemd itself says when each comes next; over its own span of time the two agree.
    #[test]
    fn as_systemd_counts() {
        for text in [
            "*:0/10",
            "*:*:0/30",
            "6,18:00",
            "Mon..Fri 08:00",
            "*-*-1,15 4..6:30",
            "Sat,Sun *:0/20",
            "*-1,4,7,10-1 00:00:00",
            "hourly",
            "weekly",
            "*:5/7:0/20",
            "*-*~1 12:00",
        ] {
            let output = std::process::Command::new("systemd-analyze")
                .args(["calendar", "--iterations=4000", text])
                .env("TZ", "UTC")
                .env("LC_ALL", "C")
                .output()
                .expect("systemd-analyze runs");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            // It ends with the year 2199, or after so many.
            let times: Vec<f64> = said.lines().filter_map(seconds_of).collect();
            let (first, last) = (times[0], times[times.len() - 1]);
            let told = (times.len() - 1) as f64 * DAY_SECONDS / (last - first);
            let ours = calendar(text).expect("it can be read");
            assert!(
                (ours / told - 1.0).abs() < 0.05,
                "{text}: {ours}, systemd {told}"
            );
        }
    }

    /// What systemd takes for a time must not be called none.
    #[test]
    fn what_systemd_reads_is_read() {
        for text in [
            "daily UTC",
            "weekly Pacific/Auckland",
            "Bi-Annually",
            "Monday",
            "Mon,  1:00",
            "Mon UTC",
            "thursday 10:00 utc",
            "12..14:10,20,30",
            "Wed..Sat,Tue 12-10-15 1:2:3",
            "05:40:23.4200004/3.1700005",
            "2003-02..04-05",
            "*-05~07/1",
            "*~1",
            "*-*",
            "2020/2-1-1",
            "00:00:00..59",
            "2003-03-05 05:40 Europe/Berlin",
        ] {
            let status = std::process::Command::new("systemd-analyze")
                .args(["calendar", text])
                .stdout(std::process::Stdio::null())
                .status();
            assert!(status.expect("systemd-analyze runs").success(), "{text}");
            assert!(calendar(text).is_some(), "{text}");
        }
        for text in [
            "every day",
            "UTC",
            "Mondays 1:00",
            "1:00 *-*-*",
            "1:00 2:00",
        ] {
            assert_eq!(calendar(text), None, "{text}");
        }
    }

    /// Of `Next elapse: Mon 2026-11-16 00:00:00 UTC`, and of the lines of the later ones.
    fn seconds_of(line: &str) -> Option<f64> {
        let (head, rest) = line.split_once(": ")?;
        let head = head.trim();
        if head != "Next elapse" && !head.starts_with("Iter") {
            return None;
        }
        let mut words = rest.split_whitespace().skip(1);
        let mut date = words.next()?.split('-').map(|n| n.parse::<i64>().ok());
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let mut time = words.next()?.split(':').map(|n| n.parse::<f64>().ok());
        let time = time.next()?? * 3_600.0 + time.next()?? * 60.0 + time.next()??;
        // Days since some day, by counting years from March on.
        let (year, month) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
        Some(days as f64 * DAY_SECONDS + time)
    }
}
