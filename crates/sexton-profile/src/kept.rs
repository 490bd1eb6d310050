//! Samples kept in memory, 12 bytes each, so that question after question can be asked
//! without reading them again.

use ahash::AHashMap;
use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, NameId, StackId, StackSample, StackTables};

use crate::import::Sink;

/// What samples have besides their time. Most have it in common with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Rest {
    cpu: u32,
    pid: u32,
    tid: u32,
    comm: NameId,
    cgroup: Option<NameId>,
    state: CoreState,
    event: NameId,
    weight: u64,
    stack: StackId,
}

/// Samples, in the order in which they came.
#[derive(Debug, Default)]
pub struct Kept {
    at_ns: Vec<u64>,
    rest: Vec<u32>,
    rests: Vec<Rest>,
    numbers: AHashMap<Rest, u32>,
}

impl Kept {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.at_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.at_ns.is_empty()
    }

    /// When the first one was taken.
    pub fn first_ns(&self) -> Option<u64> {
        self.at_ns.first().copied()
    }

    /// All that differ in more than their time, each once, without a time.
    pub fn kinds(&self) -> impl Iterator<Item = StackSample> + '_ {
        self.rests.iter().map(|rest| rest.at(0))
    }

    /// When each was taken, and which of the kinds it is.
    pub fn times(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        let kinds = self.rest.iter().map(|kind| *kind as usize);
        self.at_ns.iter().copied().zip(kinds)
    }

    /// Hands all of them to a question.
    pub fn ask(&self, tables: &StackTables, sink: &mut dyn Sink) {
        for (at_ns, rest) in self.at_ns.iter().zip(&self.rest) {
            if let Some(rest) = self.rests.get(*rest as usize) {
                sink.sample(&rest.at(*at_ns), tables);
            }
        }
    }
}

impl Rest {
    fn at(self, at_ns: u64) -> StackSample {
        StackSample {
            at: Moment::from_ns(at_ns),
            cpu: self.cpu,
            pid: self.pid,
            tid: self.tid,
            comm: self.comm,
            cgroup: self.cgroup,
            state: self.state,
            event: self.event,
            weight: self.weight,
            stack: self.stack,
        }
    }
}

impl Sink for Kept {
    fn sample(&mut self, sample: &StackSample, _: &StackTables) {
        let rest = Rest {
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            comm: sample.comm,
            cgroup: sample.cgroup,
            state: sample.state,
            event: sample.event,
            weight: sample.weight,
            stack: sample.stack,
        };
        let (numbers, rests) = (&mut self.numbers, &mut self.rests);
        let number = *numbers.entry(rest).or_insert_with(|| {
            rests.push(rest);
            u32::try_from(rests.len() - 1).unwrap_or(u32::MAX)
        });
        self.at_ns.push(sample.at.as_ns());
        self.rest.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Filter, TimePoint};
    use crate::heatmap::Shape;
    use crate::heatmap::facets::{By, Facets};
    use crate::testing::sample_at;

    #[test]
    fn what_is_kept_comes_back_as_it_was() {
        let samples: Vec<StackSample> = (0..50).map(|n| sample_at(n * 7, (n % 3) as u32)).collect();
        let tables = StackTables::default();
        let mut kept = Kept::default();
        samples
            .iter()
            .for_each(|sample| kept.sample(sample, &tables));
        let mut back: Vec<StackSample> = Vec::new();
        kept.ask(&tables, &mut back);
        assert_eq!(back, samples);
        assert_eq!((kept.len(), kept.rests.len()), (50, 3));
    }

    #[test]
    fn a_picture_of_what_is_kept_is_that_of_the_samples() {
        let second = 1_000_000_000;
        let samples: Vec<StackSample> = (0..500)
            .map(|n| sample_at(7 * second + n * 31_000_000, (n % 3) as u32))
            .collect();
        let tables = StackTables::default();
        let mut kept = Kept::default();
        samples
            .iter()
            .for_each(|sample| kept.sample(sample, &tables));
        let window = Filter {
            from: Some(TimePoint::Offset(2 * second)),
            to: Some(TimePoint::Offset(5 * second)),
            cpus: vec![0, 2],
            ..Filter::default()
        };
        for filter in [Filter::default(), window] {
            for by in [By::All, By::Core] {
                let facets = || Facets::new(by, Shape::default(), filter.clone());
                let (mut one_by_one, mut at_once) = (facets(), facets());
                kept.ask(&tables, &mut one_by_one);
                at_once.ask(&kept, &tables);
                assert!(one_by_one.n_samples() > 50);
                assert_eq!(at_once.n_samples(), one_by_one.n_samples());
                assert_eq!(at_once.grids(), one_by_one.grids());
            }
        }
    }
}
