//! How full the cores were, who had them, and who waited for one.

mod consumers;
mod groups;
mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::Fact;
use sexton_model::fact::core::{
    CORE_GUEST_RATIO, CORE_IRQ_RATIO, CORE_SOFTIRQ_RATIO, CORE_SYSTEM_RATIO, CORE_USER_RATIO,
};
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::span;
pub(crate) use consumers::{Consumer, consumers};
pub(crate) use waits::{
    LongWait, Waiter, Waiters, are_means, held_back, is_held_back, is_of_kernel, long_waits,
};

/// What programs of ordinary priority and the kernel have. Niced work is left out: it gives its
/// core to any other task at once, so a core that runs it is free for others.
static USED: [&Fact; 5] = [
    &CORE_USER_RATIO,
    &CORE_SYSTEM_RATIO,
    &CORE_IRQ_RATIO,
    &CORE_SOFTIRQ_RATIO,
    &CORE_GUEST_RATIO,
];

/// A second of which so little was sampled says nothing.
const LEAST_SEEN: f64 = 0.5;

/// What of each core was used, by sample.
#[derive(Debug)]
pub(crate) struct Cores<'a> {
    samples: BTreeMap<&'a Subject, Vec<(Moment, f64)>>,
}

impl<'a> Cores<'a> {
    pub(crate) fn of(case: &Case<'a>) -> Self {
        let mut cores: BTreeMap<&Subject, BTreeMap<Moment, f64>> = BTreeMap::new();
        for fact in USED {
            for record in case.of(fact) {
                let of_core = cores.entry(&record.subject).or_default();
                *of_core.entry(record.at).or_default() += record.value().unwrap_or(0.0);
            }
        }
        let samples = cores.into_iter();
        Self {
            samples: samples
                .map(|(core, samples)| (core, samples.into_iter().collect()))
                .collect(),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'a Subject> {
        self.samples.keys().copied()
    }

    /// These cores together.
    pub(crate) fn together(&self, is_one: impl Fn(&Subject) -> bool) -> Use {
        // Of each second: core time that was used, and core time that was seen.
        let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        let mut n_cores = 0;
        for (_, samples) in self.samples.iter().filter(|(core, _)| is_one(core)) {
            n_cores += 1;
            for pair in samples.windows(2) {
                spread(&mut sums, pair[0].0, pair[1]);
            }
        }
        let least = LEAST_SEEN * n_cores as f64;
        let seconds = sums.into_iter().filter(|(_, (_, seen))| *seen >= least);
        Use {
            n_cores,
            seconds: seconds
                .map(|(second, (used, seen))| (second, used / seen))
                .collect(),
        }
    }
}

/// The part of some cores together that was used in each second.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) n_cores: usize,
    seconds: BTreeMap<u64, f64>,
}

impl Use {
    /// Of all cores.
    pub(crate) fn of(case: &Case<'_>) -> Self {
        Cores::of(case).together(|_| true)
    }

    /// Whether anything is known.
    pub(crate) fn is_known(&self) -> bool {
        !self.seconds.is_empty()
    }

    /// The stretches in which at least this part was used, from their first to their last such
    /// second; one second with less in between does not end them.
    pub(crate) fn stretches(&self, part: f64) -> Vec<(Moment, Moment)> {
        let at = |second: u64| Moment::from_ns(second * 1_000_000_000);
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for second in self.full(part) {
            match stretches.last_mut() {
                Some((_, end)) if second <= *end + 1 => *end = second + 1,
                _ => stretches.push((second, second + 1)),
            }
        }
        stretches
            .into_iter()
            .map(|(from, to)| (at(from), at(to)))
            .collect()
    }

    fn full(&self, part: f64) -> impl Iterator<Item = u64> {
        let full = self.seconds.iter().filter(move |(_, used)| **used >= part);
        full.map(|(second, _)| *second)
    }

    /// The mean of what was used within these stretches.
    pub(crate) fn mean(&self, within: &[(Moment, Moment)]) -> f64 {
        let is_in = |second: u64| {
            let at = Moment::from_ns(second * 1_000_000_000);
            within.iter().any(|(from, to)| *from <= at && at < *to)
        };
        let values: Vec<f64> = self
            .seconds
            .iter()
            .filter(|(second, _)| is_in(**second))
            .map(|(_, used)| *used)
            .collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }
}

/// Adds what a sample says of the time since the one before to the seconds it covers.
fn spread(sums: &mut BTreeMap<u64, (f64, f64)>, from: Moment, (to, used): (Moment, f64)) {
    const SECOND: u64 = 1_000_000_000;
    let (mut at, end) = (from.as_ns(), to.as_ns());
    if end.saturating_sub(at) > 5 * SECOND {
        return;
    }
    while at < end {
        let next = ((at / SECOND + 1) * SECOND).min(end);
        let seconds = (next - at) as f64 / 1e9;
        let sum = sums.entry(at / SECOND).or_default();
        sum.0 += used * seconds;
        sum.1 += seconds;
        at = next;
    }
}

/// Seconds of an interval that ends at a moment which lie within these stretches.
fn inside(at: Moment, interval_ns: u64, within: &[(Moment, Moment)]) -> f64 {
    let from = span::earlier(at, Duration::from_nanos(interval_ns));
    let parts = within
        .iter()
        .map(|span| at.min(span.1).since(from.max(span.0)).as_secs_f64());
    parts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::testing::story::{Story, at};
    use sexton_model::timeline::Records;

    #[test]
    fn stretches_are_of_all_cores_together() {
        let story = Story::default()
            .core(0, (10.0, 30.0), (0.1, 0.88))
            .core(1, (10.0, 15.9), (0.1, 0.1))
            .core(1, (16.0, 30.0), (0.1, 0.88));
        let records = Records::new(story.records().to_vec());
        let policy = Policy::default();
        let used = Use::of(&Case::new(&records, &policy));
        assert_eq!(used.n_cores, 2);
        assert!(used.is_known());
        let stretches = used.stretches(0.9);
        assert_eq!(stretches, [(at(16.0), at(30.0))]);
        assert!((used.mean(&stretches) - 0.99).abs() < 0.01);
    }
}
