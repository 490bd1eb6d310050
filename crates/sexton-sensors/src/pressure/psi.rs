//! One pressure file: `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same for
//! `full`, which kernels before 5.13 leave out for the CPU. See
//! Documentation/accounting/psi.rst.

use std::time::Duration;

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Line {
    /// Microseconds lost since boot, or since the cgroup was made.
    pub(crate) total_us: u64,
    /// The kernel's average over ten seconds, from 0 to 1.
    pub(crate) avg10: f64,
}

/// A pressure file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Psi {
    /// Time in which at least one task waited.
    pub(crate) some: Line,
    /// Time in which all of them did; `None` where the kernel does not tell.
    pub(crate) full: Option<Line>,
}

impl Psi {
    /// Reads it; `None` when it makes no sense. Allocates nothing.
    pub(crate) fn parse(file: &[u8]) -> Option<Self> {
        let (mut some, mut full) = (None, None);
        for line in std::str::from_utf8(file).ok()?.lines() {
            match line.split_once(' ')? {
                ("some", fields) => some = Some(parse_line(fields)?),
                ("full", fields) => full = Some(parse_line(fields)?),
                // A kind that a later kernel may add.
                _ => {}
            }
        }
        Some(Self { some: some?, full })
    }
}

fn parse_line(fields: &str) -> Option<Line> {
    let (mut avg10, mut total_us) = (None, None);
    for field in fields.split(' ') {
        match field.split_once('=')? {
            ("avg10", percent) => avg10 = Some(percent.parse::<f64>().ok()? / 100.0),
            ("total", us) => total_us = Some(us.parse().ok()?),
            _ => {}
        }
    }
    let avg10 = avg10.filter(|part| (0.0..=1.0).contains(part))?;
    Some(Line {
        total_us: total_us?,
        avg10,
    })
}

/// The part of `time` that was lost; `None` when the counter began anew or no time passed.
pub(crate) fn lost(before_us: u64, now_us: u64, time: Duration) -> Option<f64> {
    let us = now_us.checked_sub(before_us)?;
    // The clock of the poll and that of the counter are read a moment apart.
    (!time.is_zero()).then(|| (us as f64 / 1e6 / time.as_secs_f64()).min(1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(file: &str, expected: Option<(u64, Option<(u64, f64)>)>) {
        let psi = Psi::parse(file.as_bytes());
        let shown = psi.map(|psi| {
            let full = psi.full.map(|full| (full.total_us, full.avg10));
            (psi.some.total_us, full)
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn both_lines_are_read() {
        check(
            "some avg10=1.36 avg60=0.88 avg300=0.69 total=23689281\nfull avg10=50.00 avg60=0.39 avg300=0.30 total=14735600\n",
            Some((23_689_281, Some((14_735_600, 0.5)))),
        );
    }

    #[test]
    fn old_kernels_leave_one_out_and_later_ones_may_add() {
        check(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
            Some((7, None)),
        );
        check(
            "some avg10=0.00 avg1h=0.00 total=7\nmost avg10=0.00 total=8\n",
            Some((7, None)),
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = [
            "",
            "some\n",
            "some avg10=0.00\n",
            "some total=1\n",
            "some avg10=0.00 total=-1\n",
            "some avg10=NaN total=1\n",
            "some avg10=101.00 total=1\n",
            "full avg10=0.00 total=1\n",
        ];
        for file in refused {
            check(file, None);
        }
    }

    #[test]
    fn a_counter_that_begins_anew_is_no_rate() {
        let second = Duration::from_secs(1);
        assert_eq!(lost(1_000_000, 1_250_000, second), Some(0.25));
        assert_eq!(lost(1_000_000, 9_000_000, second), Some(1.0));
        assert_eq!(lost(1_000_000, 10, second), None);
        assert_eq!(lost(0, 10, Duration::ZERO), None);
    }

    proptest! {
        #[test]
        fn any_bytes_do(file: Vec<u8>) {
            Psi::parse(&file);
        }

        #[test]
        fn parts_are_parts(before: u64, now: u64, ns: u64) {
            if let Some(part) = lost(before, now, Duration::from_nanos(ns)) {
                prop_assert!((0.0..=1.0).contains(&part));
            }
        }
    }
}
