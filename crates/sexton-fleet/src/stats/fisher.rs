//! Fisher's exact test of a table of two by two.

use super::special::Factorials;

/// Counts of bad and good nodes, with and without something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Bad nodes that have it.
    pub bad_with: u64,
    /// Bad nodes that do not.
    pub bad_without: u64,
    /// Good nodes that have it.
    pub good_with: u64,
    /// Good nodes that do not.
    pub good_without: u64,
}

impl Counts {
    /// All bad nodes.
    pub fn bad(self) -> u64 {
        self.bad_with + self.bad_without
    }

    /// All good nodes.
    pub fn good(self) -> u64 {
        self.good_with + self.good_without
    }

    /// All nodes that have it.
    pub fn with(self) -> u64 {
        self.bad_with + self.good_with
    }

    /// All nodes.
    pub fn all(self) -> u64 {
        self.bad() + self.good()
    }

    /// The part of bad nodes that have it.
    pub fn bad_share(self) -> f64 {
        share(self.bad_with, self.bad())
    }

    /// The part of good nodes that have it.
    pub fn good_share(self) -> f64 {
        share(self.good_with, self.good())
    }

    /// How many times likelier the table is when badness depends on it than when it does
    /// not: twice the logarithm of that (the G statistic).
    pub fn likelihood_gain(self) -> f64 {
        let n = self.all() as f64;
        let cells = [
            (self.bad_with, self.bad(), self.with()),
            (self.bad_without, self.bad(), self.all() - self.with()),
            (self.good_with, self.good(), self.with()),
            (self.good_without, self.good(), self.all() - self.with()),
        ];
        let terms = cells.into_iter().filter(|(seen, _, _)| *seen > 0);
        let sum: f64 = terms
            .map(|(seen, row, column)| {
                let expected = row as f64 * column as f64 / n;
                seen as f64 * (seen as f64 / expected).ln()
            })
            .sum();
        (2.0 * sum).max(0.0)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

/// Tables as likely as the seen one count as much: rounding must not part them.
const AS_LIKELY: f64 = 1e-7;

/// The chance of a table at least as unlikely, if nothing depends on anything (two-sided).
pub fn p_value(counts: Counts, factorials: &Factorials) -> f64 {
    let (bad, with, all) = (counts.bad(), counts.with(), counts.all());
    let least = (with + bad).saturating_sub(all);
    let most = with.min(bad);
    if least == most {
        return 1.0;
    }
    let total = factorials.ln_choose(all, bad);
    let ln_chance = |bad_with: u64| {
        factorials.ln_choose(with, bad_with) + factorials.ln_choose(all - with, bad - bad_with)
            - total
    };
    let seen = ln_chance(counts.bad_with) + AS_LIKELY;
    // Chances rise to the mode and fall after it: both tails begin where they are as
    // unlikely as what was seen.
    let mode = ((bad + 1) as f64 * (with + 1) as f64 / (all + 2) as f64) as u64;
    let mode = mode.clamp(least, most);
    let is_tail = |bad_with: u64| ln_chance(bad_with) <= seen;
    let low_end = partition(least, mode, |at| !is_tail(at)); // First that is no tail.
    let high_start = partition(mode, most + 1, is_tail); // First that is.
    let low = tail_sum((least..low_end).rev().map(ln_chance));
    let high = tail_sum((high_start.max(low_end)..=most).map(ln_chance));
    (low + high).min(1.0)
}

/// The first of a range for which `is` holds, if it holds for all after it.
fn partition(mut from: u64, mut to: u64, is: impl Fn(u64) -> bool) -> u64 {
    while from < to {
        let middle = from + (to - from) / 2;
        if is(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

/// Adds chances that fall, until the rest does not matter.
fn tail_sum(ln_chances: impl Iterator<Item = f64>) -> f64 {
    let mut sum = 0.0;
    for ln_chance in ln_chances {
        let chance = ln_chance.exp();
        sum += chance;
        if chance < sum * 1e-17 || chance == 0.0 {
            break;
        }
    }
    sum
}

/// The smallest chance that any table with these numbers of bad and good nodes can have: that of what
/// all bad nodes have and no good one. Of as many bad as good nodes, the reverse is as unlikely.
pub fn smallest_p(bad: u64, good: u64, factorials: &Factorials) -> f64 {
    let perfect = Counts {
        bad_with: bad,
        bad_without: 0,
        good_with: 0,
        good_without: good,
    };
    p_value(perfect, factorials)
}
