//! When each core was busy, counted once for a whole recording: heat maps of long windows
//! are put together from it, instead of from millions of samples every time.
//!
//! Cells are those of a heat map with rows of 20 ms (`sexton_profile::heatmap`). What a
//! growing recording may still add to is counted anew each time.

use std::collections::BTreeMap;

use sexton_model::moment::Moment;
use sexton_model::stack::StackSample;
use sexton_profile::heatmap::{Grid, HeatMap, Shape};
use sexton_store::{Bundle, StackPiece};

use crate::stacks::of_shown_event;

const SECOND: u64 = 1_000_000_000;

/// Samples come at most this much later than others of their time.
const LATE_NS: u64 = 10 * SECOND;

/// With more cores than this only all of them together are counted: each core takes some
/// 9 MB for 12 hours.
const MAX_CORES: usize = 16;

/// Counts of all cores together, and of each.
#[derive(Debug)]
struct Maps {
    all: HeatMap,
    cores: BTreeMap<u32, HeatMap>,
    has_each_core: bool,
}

impl Default for Maps {
    fn default() -> Self {
        Self {
            all: HeatMap::new(Shape::default()),
            cores: BTreeMap::new(),
            has_each_core: true,
        }
    }
}

impl Maps {
    fn add(&mut self, sample: &StackSample) {
        if !sample.state.is_busy() {
            return;
        }
        let at_ns = sample.at.as_ns();
        self.all.add(at_ns);
        if !self.has_each_core {
            return;
        }
        let core = self.cores.entry(sample.cpu);
        core.or_insert_with(|| HeatMap::new(Shape::default()))
            .add(at_ns);
        if self.cores.len() > MAX_CORES {
            self.cores.clear();
            self.has_each_core = false;
        }
    }
}

/// When cores were busy.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    /// Up to a whole second, which is not in it.
    settled: Maps,
    settled_ns: u64,
    /// From there on.
    tail: Maps,
    /// Up to where it was read; `None` when all was that is there.
    pub(crate) reading_ns: Option<u64>,
}

impl Heat {
    /// Nothing was read yet.
    pub(crate) fn begin() -> Self {
        Self {
            reading_ns: Some(0),
            ..Self::default()
        }
    }

    /// The picture of all cores or of one, in pieces; `None` when that core is not counted
    /// by itself.
    pub(crate) fn grids(&self, cpu: Option<u32>, window: (u64, u64)) -> Option<Vec<Grid>> {
        if cpu.is_some() && !(self.settled.has_each_core && self.tail.has_each_core) {
            return None;
        }
        let (from_ns, to_ns) = window;
        let pieces = [&self.settled, &self.tail].into_iter().filter_map(|maps| {
            let map = match cpu {
                None => Some(&maps.all),
                Some(cpu) => maps.cores.get(&cpu),
            }?;
            let (first, last) = map.range()?;
            let first = first.max(from_ns / SECOND);
            let last = last.min(to_ns.saturating_sub(1) / SECOND);
            map.grid_of(first, last)
        });
        Some(pieces.collect())
    }

    /// The cores that were seen; `None` when they are not counted by themselves.
    pub(crate) fn cores(&self) -> Option<Vec<u32>> {
        if !(self.settled.has_each_core && self.tail.has_each_core) {
            return None;
        }
        let both = self.settled.cores.keys().chain(self.tail.cores.keys());
        let mut cores: Vec<u32> = both.copied().collect();
        cores.sort_unstable();
        cores.dedup();
        Some(cores)
    }

    /// From where on a bundle has to be read.
    pub(crate) fn unsettled_ns(&self) -> u64 {
        self.settled_ns
    }

    /// What was counted of the time that may still change is forgotten.
    pub(crate) fn forget_tail(&mut self) {
        self.tail = Maps::default();
    }

    /// Takes samples; those before `settles_ns`, a whole second, will not change any more.
    pub(crate) fn add(&mut self, samples: &[StackSample], settles_ns: u64) {
        for sample in samples {
            if sample.at.as_ns() < settles_ns {
                self.settled.add(sample);
            } else {
                self.tail.add(sample);
            }
        }
        if let Some(last) = samples.last()
            && let Some(reading) = &mut self.reading_ns
        {
            *reading = last.at.as_ns();
        }
    }

    /// All is read that is there.
    pub(crate) fn settle(&mut self, settles_ns: u64) {
        self.settled_ns = settles_ns;
        self.reading_ns = None;
    }
}

/// The whole second before which nothing is added any more.
pub(crate) fn settles_ns(bundle: &Bundle) -> u64 {
    let end_ns = bundle.stacks_span().map_or(0, |span| span.end().as_ns());
    end_ns.saturating_sub(LATE_NS) / SECOND * SECOND
}

/// Samples of a bundle from a moment on, chunk by chunk.
pub(crate) fn chunks(bundle: &Bundle, from_ns: u64) -> impl Iterator<Item = Vec<StackSample>> {
    let window = Moment::from_ns(from_ns)..=Moment::from_ns(u64::MAX);
    bundle
        .stacks(Some(window))
        .filter_map(move |piece| match piece {
            StackPiece::Chunk(chunk) => Some(of_shown_event(bundle, chunk).samples),
            // A question about a window reports it.
            StackPiece::Gap(..) => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::stack::CoreState;

    fn sample(at_ns: u64, cpu: u32, state: CoreState) -> StackSample {
        StackSample::without_owner(Moment::from_ns(at_ns), cpu, state)
    }

    fn total(heat: &Heat, cpu: Option<u32>) -> u64 {
        let grids = heat.grids(cpu, (0, u64::MAX)).expect("counted");
        grids.iter().map(Grid::total).sum()
    }

    #[test]
    fn what_is_read_twice_is_counted_once() {
        let busy = |at| sample(at, 0, CoreState::Kernel);
        let samples: Vec<StackSample> = (0..30).map(|n| busy(n * SECOND)).collect();
        let mut heat = Heat::begin();
        heat.add(&samples, 20 * SECOND);
        heat.settle(20 * SECOND);
        assert_eq!((total(&heat, None), total(&heat, Some(0))), (30, 30));
        heat.forget_tail();
        assert_eq!(total(&heat, None), 20);
        heat.add(&samples[20..], 25 * SECOND);
        heat.settle(25 * SECOND);
        assert_eq!(total(&heat, None), 30);
        heat.add(&[sample(40 * SECOND, 1, CoreState::Idle)], 25 * SECOND);
        assert_eq!(total(&heat, None), 30, "idle cores are not busy");
    }

    #[test]
    fn many_cores_are_counted_together() {
        let mut heat = Heat::begin();
        let samples: Vec<StackSample> = (0..100)
            .map(|cpu| sample(SECOND, cpu, CoreState::User))
            .collect();
        heat.add(&samples, 0);
        assert_eq!(total(&heat, None), 100);
        assert!(heat.grids(Some(3), (0, u64::MAX)).is_none());
        assert_eq!(heat.cores(), None);
    }
}
