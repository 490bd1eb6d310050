//! The odds ratio and its interval.

use super::fisher::Counts;

/// 95 % of a normal distribution lie within this many deviations.
pub const Z_95: f64 = 1.959_963_984_540_054;

/// An odds ratio with its interval of 95 %, by Woolf's method. A table with an empty cell
/// gets a half added to each (Haldane and Anscombe).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    /// The ratio.
    pub ratio: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Odds {
    /// Of a table.
    pub fn of(counts: Counts) -> Self {
        let cells = [
            counts.bad_with,
            counts.bad_without,
            counts.good_with,
            counts.good_without,
        ];
        let shift = if cells.contains(&0) { 0.5 } else { 0.0 };
        let [a, b, c, d] = cells.map(|cell| cell as f64 + shift);
        let ln_ratio = (a * d / (b * c)).ln();
        let error = (1.0 / a + 1.0 / b + 1.0 / c + 1.0 / d).sqrt();
        Self {
            ratio: ln_ratio.exp(),
            low: (ln_ratio - Z_95 * error).exp(),
            high: (ln_ratio + Z_95 * error).exp(),
        }
    }
}
