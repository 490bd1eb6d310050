//! Where sensors put what they saw, until it is collected.
//!
//! The collector is woken when its time is over, not for each batch: a node has a dozen
//! sensors, and some look ten times a second.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sexton_model::record::Record;
use sexton_model::stack::StackBatch;

/// What may wait to be collected, in records. A collector that falls behind for longer slows
/// the sensors down; it never makes them fill memory.
///
/// Chosen: most of a minute of a small node, and ten seconds of one with a hundred cores,
/// so that a disk which is busy for seconds costs nothing.
const FULL: usize = 16_384;

/// Samples of stacks that take the room of one record.
const SAMPLES_PER_RECORD: usize = 8;

/// What one poll of a sensor has brought.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) stacks: Vec<StackBatch>,
}

impl Batch {
    fn weight(&self) -> usize {
        let samples = self.stacks.iter().map(|batch| batch.samples.len());
        1 + self.records.len() + samples.sum::<usize>() / SAMPLES_PER_RECORD
    }
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    inside: Mutex<Inside>,
    /// Rung when it is half full.
    bell: Condvar,
    /// Rung when there is room again.
    room: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    batches: Vec<Batch>,
    weight: usize,
    is_closed: bool,
}

impl Queue {
    /// Puts a batch in, and returns how long it had to wait for room. A batch that will not be
    /// collected any more is dropped.
    pub(super) fn put(&self, batch: Batch) -> Duration {
        let began = Instant::now();
        let mut inside = self.lock();
        while inside.weight >= FULL && !inside.is_closed {
            let waited = self.room.wait(inside);
            inside = waited.unwrap_or_else(PoisonError::into_inner);
        }
        inside.weight += batch.weight();
        inside.batches.push(batch);
        if inside.weight >= FULL / 2 {
            self.bell.notify_one();
        }
        began.elapsed()
    }

    /// Takes what is in it at that time, or earlier if it is half full by then.
    pub(super) fn take(&self, until: Instant) -> Vec<Batch> {
        let mut inside = self.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || inside.weight >= FULL / 2 {
                break;
            }
            let waited = self.bell.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inside.weight = 0;
        self.room.notify_all();
        std::mem::take(&mut inside.batches)
    }

    /// Nobody collects from here on.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use sexton_model::fact::memcg::MEMCG_LIVE;
    use sexton_model::moment::Moment;
    use sexton_model::record::Sink;
    use sexton_model::subject::Subject;

    use super::*;

    fn batch(n_records: usize) -> Batch {
        let mut out = Sink::new("test", Moment::default());
        for _ in 0..n_records {
            out.sample(&Subject::node(), &MEMCG_LIVE, 1.0);
        }
        Batch {
            records: out.into_records(),
            stacks: Vec::new(),
        }
    }

    fn n_records(batches: &[Batch]) -> usize {
        batches.iter().map(|batch| batch.records.len()).sum()
    }

    #[test]
    fn what_is_put_in_is_taken_out_once() {
        let queue = Queue::default();
        queue.put(batch(3));
        queue.put(batch(4));
        assert_eq!(n_records(&queue.take(Instant::now())), 7);
        assert_eq!(n_records(&queue.take(Instant::now())), 0);
    }

    #[test]
    fn one_that_is_half_full_is_taken_early() {
        let queue = Queue::default();
        queue.put(batch(FULL / 2));
        // The test would not end otherwise.
        let hour = Duration::from_secs(3600);
        assert_eq!(n_records(&queue.take(Instant::now() + hour)), FULL / 2);
    }

    #[test]
    fn a_full_one_holds_up_whoever_fills_it_until_it_is_taken_or_closed() {
        let queue = Queue::default();
        queue.put(batch(FULL));
        thread::scope(|scope| {
            let late = scope.spawn(|| queue.put(batch(1)));
            let mut taken = 0;
            while taken < FULL + 1 {
                taken += n_records(&queue.take(Instant::now()));
            }
            assert_eq!(taken, FULL + 1);
            late.join().expect("it was put in");
            queue.put(batch(FULL));
            let late = scope.spawn(|| queue.put(batch(1)));
            queue.close();
            late.join().expect("it was let go");
        });
    }
}
