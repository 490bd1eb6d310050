//! Times and amounts in words, and what a judgement is about.

use sexton_model::diagnosis::Diagnosis;
use sexton_model::finding::FindingId;
use sexton_model::moment::Moment;
use sexton_model::wall::WallClock;

use super::Judged;
use crate::text::{bytes, count, cut, duration, number};

/// A moment to the second, `2026-11-15T20:08:34Z`; without a wall clock, after boot.
pub(super) fn time(clock: &WallClock, moment: Moment) -> String {
    match clock.rfc3339(moment) {
        Some(text) => match text.split_once('.') {
            Some((seconds, _)) => format!("{seconds}Z"),
            None => text,
        },
        None => format!("{} after boot", duration(moment.as_ns() / 1_000_000_000)),
    }
}

/// What a chain is shown under.
pub(super) fn chain_heading(diagnosis: &Diagnosis, chain: &[FindingId]) -> &'static str {
    let mut findings = chain.iter().filter_map(|id| diagnosis.finding(id));
    match chain.len() {
        _ if findings.all(|finding| diagnosis.is_history(finding)) => "History",
        1 => "Finding",
        _ => "Causal chain",
    }
}

/// What [`step_downs`] are shown behind.
pub(super) const OTHER_MEANS: &str = "Measured by other means: ";

/// By what lesser means things were seen.
pub(super) fn step_downs(diagnosis: &Diagnosis) -> Option<String> {
    let steps = diagnosis.step_downs.iter();
    let steps: Vec<String> = steps
        .map(|step| format!("{} by {}", step.what, step.by))
        .collect();
    (!steps.is_empty()).then(|| steps.join(", "))
}

/// Which node, and when it was watched.
pub(super) fn about(judged: &Judged) -> String {
    about_parts(judged).join(", ")
}

/// The same in one line: as much of it as fits.
pub(super) fn about_in(judged: &Judged, width: usize) -> String {
    let parts = about_parts(judged);
    let lines = (1..=parts.len()).rev().map(|n| parts[..n].join(", "));
    let mut fitting = lines.filter(|line| line.chars().count() <= width);
    fitting
        .next()
        .unwrap_or_else(|| cut(&judged.node.name, width))
}

fn about_parts(judged: &Judged) -> Vec<String> {
    let node = &judged.node;
    let mut parts = vec![node.name.clone()];
    if let Some(window) = &judged.diagnosis.window {
        let took = window.end().since(*window.start()).as_secs_f64().round();
        let until = time(&judged.clock, *window.end());
        parts.push(format!("watched {} until {until}", duration(took as u64)));
    }
    parts.push(format!("Linux {}", node.kernel));
    if let Some(cpus) = node.cpus {
        parts.push(count(cpus as u64, "CPU"));
    }
    if let Some(memory) = node.memory_bytes {
        parts.push(bytes(memory as u64));
    }
    parts
}

/// A count that may be large, negative or have a fraction.
pub(super) fn amount(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    match size {
        _ if !size.is_finite() => "any number".into(),
        _ if size >= 10.0 => format!("{sign}{}", number(size.round() as u64)),
        _ => format!("{sign}{size:.1}"),
    }
}

/// A number of days in words.
pub(super) fn days(days: f64) -> String {
    match days {
        _ if !days.is_finite() => "an unknown time".into(),
        d if d >= 730.0 => format!("{} years", number((d / 365.25).round() as u64)),
        d if d >= 2.0 => format!("{d:.0} days"),
        d => duration((d.max(0.0) * 86_400.0).round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_days_are_short() {
        for (value, text) in [
            (68_680.4, "68,680"),
            (9.96, "10.0"),
            (0.04, "0.0"),
            (-1234.0, "-1,234"),
            (f64::INFINITY, "any number"),
        ] {
            assert_eq!(amount(value), text);
        }
        for (value, text) in [
            (0.5, "12h"),
            (6.4, "6 days"),
            (1461.0, "4 years"),
            (f64::NAN, "an unknown time"),
        ] {
            assert_eq!(days(value), text);
        }
    }

    #[test]
    fn a_time_without_a_wall_clock_counts_from_boot() {
        let moment = Moment::from_ns(3_600_000_000_000);
        assert_eq!(time(&WallClock::default(), moment), "1h after boot");
        let clock = WallClock::new(vec![(moment, 0)]);
        assert_eq!(time(&clock, moment), "1970-01-01T00:00:00Z");
    }
}
