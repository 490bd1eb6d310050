//! When each core was last sampled.
//!
//! A timer does not outlive its core. One that was taken away and came back between two looks at
//! what is online has a timer that never fires again, and no list of cores shows that.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_bpf::prog::stacks::Sample;
use sexton_model::moment::Moment;

/// A core is quiet for this long, and for this number of samples, before it gets a new timer.
/// Idle cores are sampled too.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_SAMPLES: u32 = 20;

/// When each core was last sampled, or its timer was made.
#[derive(Debug)]
pub(super) struct Heard {
    last: BTreeMap<u32, Moment>,
    patience: Duration,
}

impl Heard {
    pub(super) fn new(period: Duration) -> Self {
        Self {
            last: BTreeMap::new(),
            patience: PATIENCE.max(period * PATIENCE_SAMPLES),
        }
    }

    pub(super) fn note(&mut self, cpu: u32, at: Moment) {
        let last = self.last.entry(cpu).or_insert(at);
        *last = at.max(*last);
    }

    pub(super) fn note_all(&mut self, samples: &[Sample]) {
        for sample in samples {
            self.note(sample.cpu, Moment::from_ns(sample.at_ns));
        }
    }

    pub(super) fn forget(&mut self, cpu: u32) {
        self.last.remove(&cpu);
    }

    /// Those that have been quiet for too long, and for how long.
    pub(super) fn quiet(&self, now: Moment) -> Vec<(u32, Duration)> {
        let quiet = self.last.iter().map(|(cpu, last)| (*cpu, now.since(*last)));
        quiet.filter(|(_, time)| *time > self.patience).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_ns(ms * 1_000_000)
    }

    /// The cores that are quiet at the end; samples are a core and milliseconds.
    fn check(hz: u32, samples: &[(u32, u64)], now_ms: u64, expected: &[u32]) {
        let mut heard = Heard::new(Duration::from_secs(1) / hz);
        for (cpu, ms) in samples {
            heard.note(*cpu, at(*ms));
        }
        let quiet = heard.quiet(at(now_ms));
        let cores: Vec<u32> = quiet.into_iter().map(|(cpu, _)| cpu).collect();
        assert_eq!(cores, expected);
    }

    #[test]
    fn a_core_without_samples_is_quiet_after_a_while() {
        let samples = [(0, 1_000), (1, 1_000), (0, 3_500), (0, 3_400)];
        check(99, &samples, 3_500, &[1]);
        check(99, &samples, 2_900, &[]);
    }

    #[test]
    fn slow_samplers_have_more_patience() {
        check(1, &[(0, 0)], 19_000, &[]);
        check(1, &[(0, 0)], 21_000, &[0]);
    }

    #[test]
    fn one_that_went_is_not_waited_for() {
        let mut heard = Heard::new(Duration::from_millis(10));
        heard.note(3, at(0));
        heard.forget(3);
        assert_eq!(heard.quiet(at(60_000)), []);
    }
}
