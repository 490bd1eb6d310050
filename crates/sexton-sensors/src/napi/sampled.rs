//! What each core runs, sampled by events of perf, for the last seconds.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::RangeInclusive;

use sexton_host::perf::{Ask, Tasks, Watch, What};
use sexton_host::{Host, machine};
use sexton_model::text;

use super::by_proc::SAMPLE_EVERY;
use super::holder::Holder;

/// Samples of each core that are kept: half a minute.
const MAX_KEPT: usize = 300;

/// Room of each core for what comes between two polls.
const RING_BYTES: usize = 1 << 16;

/// Samples of all cores.
pub(super) struct Sampled {
    watch: Watch,
    tasks: Tasks,
    cores: BTreeMap<u32, VecDeque<Seen>>,
}

/// What a core ran at one moment.
#[derive(Debug, Clone)]
struct Seen {
    at_ns: u64,
    tid: u32,
    comm: Option<String>,
    kernel: Vec<u64>,
}

impl Sampled {
    /// Begins to sample. Fails where no core may be sampled.
    pub(super) fn open(host: &Host) -> io::Result<Self> {
        let cores = machine::online_cpus(host).map_err(io::Error::other)?;
        let mut watch = Watch::new(Ask::Stacks(SAMPLE_EVERY), RING_BYTES);
        match watch.follow_cores(&cores) {
            Some(error) if watch.cores().is_empty() => Err(error),
            _ => Ok(Self {
                watch,
                tasks: Tasks::default(),
                cores: BTreeMap::new(),
            }),
        }
    }

    /// Takes what was sampled since the last time.
    pub(super) fn drain(&mut self, host: &Host) {
        if let Ok(online) = machine::online_cpus(host) {
            self.watch.follow_cores(&online);
        }
        let (tasks, cores) = (&mut self.tasks, &mut self.cores);
        self.watch.drain(|record| {
            let What::Sample(sample) = &record.what else {
                return tasks.note(host, &record.what);
            };
            let kept = cores.entry(record.cpu).or_default();
            if kept.len() >= MAX_KEPT {
                kept.pop_front();
            }
            let task = (sample.tid != 0).then(|| tasks.get(host, sample.tid));
            kept.push_back(Seen {
                at_ns: record.at_ns,
                tid: sample.tid,
                comm: task.flatten().map(|task| text::escape(&task.comm)),
                kernel: sample.kernel.clone(),
            });
        });
        self.tasks.forget_exited();
    }

    /// The task that had a core most of the time, and its last kernel stack; `None` when the
    /// core was idle, or was not sampled then.
    pub(super) fn holder(
        &self,
        cpu: u32,
        wait_ns: RangeInclusive<u64>,
    ) -> Option<(Holder, Vec<u64>)> {
        let kept = self.cores.get(&cpu)?.iter();
        let during: Vec<&Seen> = kept
            .filter(|seen| wait_ns.contains(&seen.at_ns) && seen.tid != 0)
            .collect();
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for seen in &during {
            *counts.entry(seen.tid).or_default() += 1;
        }
        // Of two that had it as often, the one that has it now.
        let last = |tid: u32| during.iter().rposition(|seen| seen.tid == tid);
        let (tid, n) = counts.into_iter().max_by_key(|(tid, n)| (*n, last(*tid)))?;
        let mut own = during.iter().filter(|seen| seen.tid == tid);
        let first = own.clone().next()?;
        let last = own.next_back()?;
        let length_ns = wait_ns.end().saturating_sub(*wait_ns.start());
        let sampled_ns = (n as u64).saturating_mul(SAMPLE_EVERY.as_nanos() as u64);
        let holder = Holder {
            pid: tid,
            comm: last.comm.clone(),
            since_ns: first.at_ns,
            ns: sampled_ns.min(length_ns),
        };
        Some((holder, last.kernel.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at_ns: u64, tid: u32) -> Seen {
        Seen {
            at_ns,
            tid,
            comm: Some(format!("task-{tid}")),
            kernel: vec![at_ns],
        }
    }

    /// Samples of core 3 as moment and task; who held it from 100 to 900, for how many samples,
    /// and when its stack was taken.
    #[track_caller]
    fn check(samples: &[(u64, u32)], expected: Option<(u32, u64)>) {
        let kept = samples.iter().map(|(at, tid)| seen(*at, *tid)).collect();
        let sampled = Sampled {
            watch: Watch::new(Ask::Stacks(SAMPLE_EVERY), RING_BYTES),
            tasks: Tasks::default(),
            cores: BTreeMap::from([(3, kept)]),
        };
        let found = sampled.holder(3, 100..=900);
        let found = found.map(|(holder, frames)| (holder.pid, frames[0]));
        assert_eq!(found, expected);
        assert!(sampled.holder(4, 100..=900).is_none());
    }

    #[test]
    fn the_task_that_was_sampled_most_during_the_wait() {
        check(&[], None);
        check(&[(50, 7), (950, 7)], None);
        check(&[(200, 0), (300, 0), (400, 7)], Some((7, 400)));
        check(&[(200, 5), (300, 5), (400, 7)], Some((5, 300)));
        check(&[(200, 5), (300, 7)], Some((7, 300)));
        check(&[(50, 5), (60, 5), (300, 7)], Some((7, 300)));
    }
}
