//! How fast something grows, and how sure that is.

use std::time::Duration;

use sexton_model::moment::Moment;

/// Fewer points than this make no line: two always lie on one.
pub(crate) const LEAST_POINTS: usize = 3;

/// A straight line through points, by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trend {
    pub(crate) per_second: f64,
    /// The standard error of that.
    pub(crate) error: f64,
    pub(crate) n_points: usize,
}

impl Trend {
    /// The line through these points: seconds, and how many then. `None` from fewer than
    /// three, or when all are of one moment.
    pub(crate) fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len();
        if n < LEAST_POINTS {
            return None;
        }
        let count = n as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (mid_x, mid_y) = (mean(|p| p.0), mean(|p| p.1));
        let spread: f64 = points.iter().map(|p| (p.0 - mid_x).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let per_second = points
            .iter()
            .map(|p| (p.0 - mid_x) * (p.1 - mid_y))
            .sum::<f64>()
            / spread;
        let rest: f64 = points
            .iter()
            .map(|p| (p.1 - mid_y - per_second * (p.0 - mid_x)).powi(2))
            .sum();
        Some(Self {
            per_second,
            error: (rest / (count - 2.0) / spread).sqrt(),
            n_points: n,
        })
    }

    /// The same, of moments.
    pub(crate) fn of(points: &[(Moment, f64)]) -> Option<Self> {
        let points: Vec<(f64, f64)> = points
            .iter()
            .map(|(at, value)| (at.as_ns() as f64 / 1e9, *value))
            .collect();
        Self::through(&points)
    }

    /// The least that it grows, with the error taken off twice.
    pub(crate) fn least(&self) -> f64 {
        self.per_second - 2.0 * self.error
    }
}

/// What a counter grew by. A value less than the one before is a counter that began anew.
pub(crate) fn growth(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut grown = 0.0;
    let mut before: Option<f64> = None;
    for value in values {
        grown += match before {
            Some(before) if value >= before => value - before,
            Some(_) => value,
            None => 0.0,
        };
        before = Some(value);
    }
    grown
}

/// Whether things went on happening until the end, and are not one burst: they are spread
/// over the time since the first, and the last is not longer ago than their pace explains.
pub(crate) fn goes_on(times: &[Moment], now: Moment, least_span: Duration) -> bool {
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return false;
    };
    if times.len() < LEAST_POINTS || last.since(*first) < least_span {
        return false;
    }
    let pace = last.since(*first) / (times.len() - 1) as u32;
    if now.since(*last) > (pace * 3).max(Duration::from_secs(5)) {
        return false;
    }
    let whole = now.since(*first).as_nanos().max(1);
    let mut quarters = [false; 4];
    for at in times {
        let quarter = at.since(*first).as_nanos() * 4 / whole;
        quarters[(quarter as usize).min(3)] = true;
    }
    quarters.iter().filter(|is_hit| **is_hit).count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_its_error() {
        let exact = Trend::through(&[(0.0, 5.0), (10.0, 25.0), (20.0, 45.0)]).expect("a line");
        assert_eq!((exact.per_second, exact.error), (2.0, 0.0));
        let rough = Trend::through(&[(0.0, 5.0), (10.0, 45.0), (20.0, 45.0)]).expect("a line");
        assert!(rough.error > 0.5, "{rough:?}");
        assert_eq!(Trend::through(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Trend::through(&[(3.0, 1.0); 5]), None);
    }

    #[test]
    fn a_counter_that_begins_anew_never_shrinks() {
        assert_eq!(growth([5.0, 7.0, 9.0]), 4.0);
        assert_eq!(growth([5.0, 7.0, 2.0, 3.0]), 5.0);
        assert_eq!(growth([5.0, 0.0]), 0.0);
        assert_eq!(growth([5.0]), 0.0);
        assert_eq!(growth([]), 0.0);
    }

    fn check(seconds: &[u64], now: u64, expected: bool) {
        let at = |s: &u64| Moment::from_ns(s * 1_000_000_000);
        let times: Vec<Moment> = seconds.iter().map(at).collect();
        let found = goes_on(&times, at(&now), Duration::from_secs(10));
        assert_eq!(found, expected, "{seconds:?} until {now}");
    }

    #[test]
    fn a_loop_goes_on_and_a_burst_does_not() {
        check(&[0, 5, 10, 15, 20, 25, 30], 31, true);
        check(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 40, false);
        check(&[0, 1, 2, 3], 4, false);
        check(&[0, 25], 30, false);
        check(&[0, 1, 1, 2, 2, 30], 31, false);
        check(&[], 31, false);
    }
}
