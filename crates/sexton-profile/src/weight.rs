//! What is added up: samples, or what they stand for, and in which unit that is.

use sexton_model::stack::{NameId, StackSample, StackTables};

use crate::flame::Count;

/// Nanoseconds that threads waited; the name that perf gives it, too.
pub const OFF_CPU: &str = "off-cpu";

/// What is added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weight {
    /// Each sample is one.
    Samples,
    /// What each sample stands for: nanoseconds of a clock, or the count of another event.
    #[default]
    Time,
}

impl Weight {
    /// What one sample adds.
    pub(crate) fn of(self, sample: &StackSample) -> Count {
        Count {
            samples: 1,
            weight: match self {
                Self::Samples => 1,
                Self::Time => sample.weight,
            },
        }
    }
}

/// What sums count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Unit {
    /// Samples.
    #[default]
    Samples,
    /// Nanoseconds on a core, or waiting.
    Nanoseconds,
    /// So many of this event.
    Events(String),
}

impl Unit {
    /// The unit of `total`, of samples of `event`; of several events, there is none but
    /// samples.
    pub fn of(total: Count, event: Option<NameId>, tables: &StackTables) -> Self {
        // A text without periods says no more than how many samples there are.
        let event = event.map(|event| tables.name(event));
        match event.filter(|_| total.weight != total.samples) {
            None => Self::Samples,
            Some(event) if is_clock(event) => Self::Nanoseconds,
            Some(event) => Self::Events(event.to_owned()),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        match self {
            Self::Samples => "samples",
            Self::Nanoseconds => "nanoseconds",
            Self::Events(event) => event,
        }
    }

    /// A sum with its unit: `1.25 s`, `1,234 samples`.
    pub fn shown(&self, sum: u64) -> String {
        match self {
            Self::Nanoseconds => time(sum),
            unit => format!("{} {}", grouped(sum), unit.name()),
        }
    }
}

/// Events whose weight is a time: on a core, or waiting for something else.
pub(crate) fn is_clock(event: &str) -> bool {
    let event = event.split(':').next().unwrap_or(event);
    matches!(event, "cpu-clock" | "task-clock" | OFF_CPU)
}

/// What the weights of an event are called in other formats, and their unit.
pub(crate) fn value_type(event: &str) -> (&str, &'static str) {
    match event {
        OFF_CPU => (OFF_CPU, "nanoseconds"),
        event if is_clock(event) => ("cpu", "nanoseconds"),
        event => (event, "count"),
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.extend(group.iter().map(|&digit| char::from(digit)));
    }
    text
}

/// Nanoseconds in the largest unit that leaves at least one, with three digits.
fn time(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let Some((size, unit)) = UNITS.iter().find(|(size, _)| ns >= *size) else {
        return format!("{ns} ns");
    };
    if ns >= size * 1000 {
        return format!("{} {unit}", grouped(ns / size));
    }
    #[allow(clippy::cast_precision_loss, reason = "shown with three digits")]
    let value = ns as f64 / *size as f64;
    let n_digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.n_digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_their_unit() {
        for (unit, sum, shown) in [
            (Unit::Samples, 1_234, "1,234 samples"),
            (Unit::Nanoseconds, 999, "999 ns"),
            (Unit::Nanoseconds, 2_004_008, "2.00 ms"),
            (Unit::Nanoseconds, 194_300_000, "194 ms"),
            (Unit::Nanoseconds, 12_340_000_000, "12.3 s"),
            (Unit::Nanoseconds, 86_400_000_000_000, "86,400 s"),
            (Unit::Events("page-faults".into()), 12, "12 page-faults"),
            (Unit::Events("cycles".into()), 1_000_000, "1,000,000 cycles"),
        ] {
            assert_eq!(unit.shown(sum), shown);
        }
    }
}
