//! Whether a number is greater on bad nodes: the test of Mann and Whitney, and by how much:
//! the shift of the median.

use super::odds::Z_95;
use super::special::normal_two_sided;

/// How a number differs between bad and good nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Bad nodes that have the number.
    pub n_bad: usize,
    /// Good nodes that have it.
    pub n_good: usize,
    /// The median of bad nodes.
    pub bad_median: f64,
    /// The median of good nodes.
    pub good_median: f64,
    /// The interval of 95 % of the difference of the medians.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The chance that a bad node has more than a good one; ties count half.
    pub superiority: f64,
    /// Deviations from what chance alone gives.
    pub z: f64,
    /// The two-sided chance of that.
    pub p: f64,
}

/// Compares numbers; `None` when one side has none. With continuity correction and correction
/// for ties, as is usual for the normal approximation.
pub fn shift(bad: &[f64], good: &[f64]) -> Option<Shift> {
    if bad.is_empty() || good.is_empty() {
        return None;
    }
    let (bad_sorted, good_sorted) = (sorted(bad), sorted(good));
    let (rank_sum, ties) = ranked(&bad_sorted, &good_sorted);
    let (n_bad, n_good) = (bad.len() as f64, good.len() as f64);
    let n = n_bad + n_good;
    let u = rank_sum - n_bad * (n_bad + 1.0) / 2.0;
    let mean = n_bad * n_good / 2.0;
    let variance = n_bad * n_good / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)).max(1.0));
    let z = match variance > 0.0 {
        true => ((u - mean).abs() - 0.5).max(0.0) / variance.sqrt() * (u - mean).signum(),
        false => 0.0,
    };
    let (bad_median, good_median) = (median(&bad_sorted), median(&good_sorted));
    let (bad_error, good_error) = (median_error(&bad_sorted), median_error(&good_sorted));
    let reach = Z_95 * bad_error.hypot(good_error);
    Some(Shift {
        n_bad: bad.len(),
        n_good: good.len(),
        bad_median,
        good_median,
        low: bad_median - good_median - reach,
        high: bad_median - good_median + reach,
        superiority: u / (n_bad * n_good),
        z,
        p: normal_two_sided(z),
    })
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The sum of the ranks of bad nodes among all, and what ties take from the variance.
fn ranked(bad: &[f64], good: &[f64]) -> (f64, f64) {
    let (mut rank_sum, mut ties) = (0.0, 0.0);
    let (mut b, mut g) = (0, 0);
    while b < bad.len() || g < good.len() {
        let value = match (bad.get(b), good.get(g)) {
            (Some(bad), Some(good)) => bad.min(*good),
            (bad, good) => *bad.or(good).unwrap_or(&f64::NAN),
        };
        let equal = |side: &[f64]| side.iter().take_while(|other| **other == value).count();
        let (n_bad, n_good) = (equal(&bad[b..]), equal(&good[g..]));
        let (start, n) = ((b + g) as f64, (n_bad + n_good) as f64);
        // Ranks count from 1; those who tie share the mean of theirs.
        rank_sum += n_bad as f64 * (start + (n + 1.0) / 2.0);
        ties += n.powi(3) - n;
        b += n_bad;
        g += n_good;
        if n_bad + n_good == 0 {
            break;
        }
    }
    (rank_sum, ties)
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The standard error of a median, by McKean and Schrader: from the order statistics that
/// enclose it with 95 %.
fn median_error(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let below = ((n + 1.0) / 2.0 - Z_95 * (n / 4.0).sqrt()).round().max(1.0);
    let low = sorted[(below as usize - 1).min(sorted.len() - 1)];
    let high = sorted[sorted.len() - (below as usize).min(sorted.len())];
    (high - low) / (2.0 * Z_95)
}
