//! Whether numbers over time grow, by Mann and Kendall, and how fast, by Theil and Sen: neither
//! asks how the numbers are distributed, and one wild number moves neither.

use super::special::normal_two_sided;

/// Fewer numbers can be in order by chance.
pub const MIN_NUMBERS: usize = 8;

/// How numbers change from one step to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// How likely such an order is by chance, with more and with less of it.
    pub p: f64,
    /// Whether later numbers are larger.
    pub is_growth: bool,
}

/// The trend of numbers at equal steps, `NaN` where there is none; none if there are too few.
pub fn trend(values: &[f64]) -> Option<Trend> {
    let known: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    let n = known.len();
    if n < MIN_NUMBERS {
        return None;
    }
    let mut in_order = 0i64;
    for (at, early) in known.iter().enumerate() {
        for late in &known[at + 1..] {
            in_order += i64::from(late > early) - i64::from(late < early);
        }
    }
    let pairs = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64;
    let variance = (pairs(n) - ties(known).map(pairs).sum::<f64>()) / 18.0;
    let p = match in_order {
        0 => 1.0,
        // Corrected for continuity: the sum has whole steps.
        sum => normal_two_sided((sum.abs() - 1) as f64 / variance.sqrt()),
    };
    Some(Trend {
        p,
        is_growth: in_order > 0,
    })
}

/// How many numbers are alike, for each number that is there several times.
fn ties(mut known: Vec<f64>) -> impl Iterator<Item = usize> {
    known.sort_by(f64::total_cmp);
    let runs: Vec<usize> = known.chunk_by(|a, b| a == b).map(<[f64]>::len).collect();
    runs.into_iter().filter(|n| *n > 1)
}

/// How much numbers change from one step to the next: the median over all pairs.
pub fn slope(values: &[f64]) -> f64 {
    let known = || {
        values
            .iter()
            .enumerate()
            .filter(|(_, value)| !value.is_nan())
    };
    let mut slopes: Vec<f64> = known()
        .flat_map(|(at, early)| {
            let later = known().filter(move |(other, _)| *other > at);
            later.map(move |(other, late)| (late - early) / (other - at) as f64)
        })
        .collect();
    slopes.sort_by(f64::total_cmp);
    match (slopes.len(), slopes.len() / 2) {
        (0, _) => f64::NAN,
        (n, middle) if n % 2 == 1 => slopes[middle],
        (_, middle) => f64::midpoint(slopes[middle - 1], slopes[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_pymannkendall_says() {
        // What `original_test` of pymannkendall 1.4.3 gives.
        let check = |values: &[f64], p: f64, is_growth: bool, expected: f64| {
            let found = trend(values).unwrap();
            assert!(
                (found.p - p).abs() < 1e-9 * p.max(1e-3),
                "{found:?}, not {p}"
            );
            assert_eq!(found.is_growth, is_growth);
            assert!((slope(values) - expected).abs() < 1e-12);
        };
        let line: Vec<f64> = (1..=12).map(f64::from).collect();
        check(&line, 8.303_107_353_668_793e-6, true, 1.0);
        let wild = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0];
        check(&wild, 0.234_702_477_955_160_75, true, 0.25);
        let falling = [10.0, 9.0, 9.0, 8.0, 8.0, 7.0, 5.0, 6.0, 4.0, 3.0];
        check(&falling, 0.000_310_141_489_182_402_8, false, -0.75);
    }

    #[test]
    fn gaps_are_no_numbers() {
        let with_gaps = [1.0, f64::NAN, 3.0, 4.0, f64::NAN, 6.0, 7.0, 8.0, 9.0, 10.0];
        assert!(trend(&with_gaps).is_some_and(|trend| trend.is_growth && trend.p < 0.01));
        assert_eq!(slope(&with_gaps), 1.0);
        assert_eq!(trend(&with_gaps[..8]), None);
        assert!(trend(&[5.0; 12]).is_some_and(|trend| trend.p == 1.0));
    }
}
