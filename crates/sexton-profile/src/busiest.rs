//! The busiest windows: where on which core most samples are, so that a burst of 300 ms in
//! an hour is found without looking for it.

use ahash::AHashMap;
use sexton_model::stack::{StackSample, StackTables};

use crate::filter::{Filter, Matcher};
use crate::import::Sink;

/// A window is this many steps wide, and begins at any of them.
const STEPS: u64 = 30;

/// Counts samples on each core in steps of a part of a window.
#[derive(Debug)]
pub struct Busiest {
    step_ns: u64,
    matcher: Matcher,
    cores: AHashMap<u32, AHashMap<u64, u32>>,
    latest_ns: u64,
}

/// One busy window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyWindow {
    /// On this core.
    pub cpu: u32,
    /// From here, by the recording's clock.
    pub from_ns: u64,
    /// Up to here.
    pub to_ns: u64,
    /// Samples in it.
    pub n_samples: u64,
    /// Samples in a window of that core that half of all windows exceed.
    pub usual: u64,
}

impl Busiest {
    /// Looks for windows that are `width_ns` wide.
    pub fn new(width_ns: u64, filter: Filter) -> Self {
        Self {
            step_ns: (width_ns / STEPS).max(1),
            matcher: Matcher::new(filter),
            cores: AHashMap::new(),
            latest_ns: 0,
        }
    }

    /// When the recording begins, rounded down to a whole second.
    pub fn origin_ns(&self) -> Option<u64> {
        self.matcher.origin_ns()
    }

    /// The `n` busiest windows that do not overlap, busiest first.
    pub fn windows(&self, n: usize) -> Vec<BusyWindow> {
        let origin = self.matcher.origin_ns().unwrap_or(0);
        let n_windows = self.latest_ns.saturating_sub(origin) / (self.step_ns * STEPS) + 1;
        let mut found: Vec<BusyWindow> = Vec::new();
        for (&cpu, steps) in &self.cores {
            let mut sums = sums(steps);
            let usual = usual(steps, n_windows);
            sums.sort_unstable_by_key(|&(first, sum)| (std::cmp::Reverse(sum), first));
            let mut taken: Vec<u64> = Vec::new();
            for (first, sum) in sums {
                if taken.len() >= n {
                    break;
                }
                if taken.iter().all(|other| other.abs_diff(first) >= STEPS) {
                    taken.push(first);
                    found.push(BusyWindow {
                        cpu,
                        from_ns: origin + first * self.step_ns,
                        to_ns: origin + (first + STEPS) * self.step_ns,
                        n_samples: sum,
                        usual,
                    });
                }
            }
        }
        found.sort_by_key(|window| {
            (
                std::cmp::Reverse(window.n_samples),
                window.from_ns,
                window.cpu,
            )
        });
        found.truncate(n);
        found
    }
}

/// What each window that begins with a step that has samples adds up to: no other window
/// can hold more.
fn sums(steps: &AHashMap<u64, u32>) -> Vec<(u64, u64)> {
    let sum = |first: u64| {
        let counts = (first..first + STEPS).filter_map(|step| steps.get(&step));
        counts.map(|n| u64::from(*n)).sum()
    };
    let starts = steps.keys().copied();
    starts.map(|first| (first, sum(first))).collect()
}

/// The median of windows side by side, empty ones included.
fn usual(steps: &AHashMap<u64, u32>, n_windows: u64) -> u64 {
    let mut windows: AHashMap<u64, u64> = AHashMap::new();
    for (step, n) in steps {
        *windows.entry(step / STEPS).or_default() += u64::from(*n);
    }
    let mut counts: Vec<u64> = windows.into_values().collect();
    counts.sort_unstable();
    let n_empty = usize::try_from(n_windows)
        .unwrap_or(usize::MAX)
        .saturating_sub(counts.len());
    let middle = (n_empty + counts.len()) / 2;
    middle
        .checked_sub(n_empty)
        .and_then(|at| counts.get(at))
        .copied()
        .unwrap_or(0)
}

impl Sink for Busiest {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        let at = sample.at.as_ns();
        if self.matcher.is_in_window(sample) {
            self.latest_ns = self.latest_ns.max(at);
        }
        if self.matcher.accepts(sample, tables) {
            let since = at.saturating_sub(self.matcher.origin_ns().unwrap_or(0));
            let steps = self.cores.entry(sample.cpu).or_default();
            *steps.entry(since / self.step_ns).or_default() += 1;
        }
    }

    fn wants_stacks(&self) -> bool {
        self.matcher.looks_at_stacks()
    }

    fn wants_owners(&self) -> bool {
        self.matcher.looks_at_owners()
    }

    fn matcher(&self) -> Option<&Matcher> {
        Some(&self.matcher)
    }

    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        Some(&mut self.matcher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample_at;

    #[test]
    fn a_burst_is_found_on_its_core() {
        const MS: u64 = 1_000_000;
        let mut busiest = Busiest::new(300 * MS, Filter::default());
        let tables = StackTables::default();
        for n in 0..600 {
            busiest.sample(&sample_at(n * 100 * MS, 0), &tables);
            if (331..334).contains(&n) {
                (0..10).for_each(|m| {
                    busiest.sample(&sample_at(n * 100 * MS + m * 10 * MS, 1), &tables)
                });
            }
        }
        let windows = busiest.windows(3);
        assert_eq!(
            windows[0],
            BusyWindow {
                cpu: 1,
                from_ns: 33_100 * MS,
                to_ns: 33_400 * MS,
                n_samples: 30,
                usual: 0
            }
        );
        assert_eq!(
            (windows[1].cpu, windows[1].n_samples, windows[1].usual),
            (0, 3, 3)
        );
    }
}
