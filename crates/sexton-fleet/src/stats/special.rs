//! Logarithms of factorials, and the tail of the chi-squared distribution.

/// Logarithms of factorials, from 0 on.
#[derive(Debug)]
pub struct Factorials(Vec<f64>);

impl Factorials {
    /// Of 0 to `n`.
    pub fn up_to(n: u64) -> Self {
        let mut sum = 0.0;
        let mut lost = 0.0;
        let mut logs = vec![0.0];
        for i in 1..=n {
            // Kahan's sum: 100,000 roundings would otherwise show in the last digits.
            let term = (i as f64).ln() - lost;
            let next: f64 = sum + term;
            lost = (next - sum) - term;
            sum = next;
            logs.push(sum);
        }
        Self(logs)
    }

    /// The logarithm of `n!`.
    pub fn ln(&self, n: u64) -> f64 {
        let at = usize::try_from(n).unwrap_or(usize::MAX);
        self.0.get(at).copied().unwrap_or(f64::INFINITY)
    }

    /// The logarithm of the number of ways to choose `k` of `n`.
    pub fn ln_choose(&self, n: u64, k: u64) -> f64 {
        self.ln(n) - self.ln(k) - self.ln(n - k)
    }
}

/// The chance that a chi-squared variable with these degrees of freedom is at least `x`.
pub fn chi_squared_tail(x: f64, degrees: f64) -> f64 {
    if x <= 0.0 || degrees <= 0.0 {
        return 1.0;
    }
    gamma_tail(degrees / 2.0, x / 2.0)
}

/// The chance that a normal variable is at least this many deviations from its mean.
pub fn normal_two_sided(z: f64) -> f64 {
    chi_squared_tail(z * z, 1.0)
}

/// The regularized upper incomplete gamma function: its series where that converges fast,
/// else its continued fraction by Lentz's method.
fn gamma_tail(a: f64, x: f64) -> f64 {
    const STEPS: usize = 10_000;
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let mut term = 1.0 / a;
        let mut sum = term;
        for n in 1..STEPS {
            term *= x / (a + n as f64);
            sum += term;
            if term < sum * f64::EPSILON {
                break;
            }
        }
        return (1.0 - sum * scale).clamp(0.0, 1.0);
    }
    let tiny = f64::MIN_POSITIVE / f64::EPSILON;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / tiny;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for n in 1..STEPS {
        let n = n as f64;
        let an = -n * (n - a);
        b += 2.0;
        d = 1.0 / away_from_zero(an * d + b, tiny);
        c = away_from_zero(b + an / c, tiny);
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    (fraction * scale).clamp(0.0, 1.0)
}

fn away_from_zero(x: f64, tiny: f64) -> f64 {
    if x.abs() < tiny { tiny } else { x }
}

/// The logarithm of the gamma function for positive numbers: Stirling's series, after the
/// argument has been raised to where seven terms suffice.
fn ln_gamma(mut x: f64) -> f64 {
    const TERMS: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let mut below = 0.0;
    while x < 12.0 {
        below += x.ln();
        x += 1.0;
    }
    let series = TERMS
        .iter()
        .rev()
        .fold(0.0, |sum, term| sum / (x * x) + term)
        / x;
    (x - 0.5) * x.ln() - x + (2.0 * std::f64::consts::PI).ln() / 2.0 + series - below
}
