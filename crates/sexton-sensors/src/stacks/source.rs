//! Where samples come from: a BPF program on each core's clock, or events of perf where no
//! program can be loaded.

use std::io;
use std::time::Duration;

use sexton_bpf::prog::stacks::{Options, Sample, State, Tally, Watch};
use sexton_host::perf::{self, Ask, Spaces, Tasks, What};
use sexton_host::{Host, machine, process};
use sexton_model::gap::{Gap, Why};

use super::told::{Told, forget_if_lost};
use super::{NAME, refused};
use crate::bpf;

/// What a core's ring holds of perf's records, as the least and the most. A sample takes half a
/// kilobyte at most times.
const RING_BYTES: std::ops::RangeInclusive<usize> = 1 << 16..=1 << 20;
const SAMPLE_BYTES: usize = 1024;

/// The number that the kernel gives a process that is about to be gone.
const EXITING: u32 = u32::MAX;

/// Something that samples cores.
pub(super) enum Source {
    Bpf(Box<ByBpf>),
    Perf(Box<ByPerf>),
}

/// Samples by a BPF program.
pub(super) struct ByBpf {
    watch: Watch,
    told: Told,
}

/// Samples by events of perf.
pub(super) struct ByPerf {
    watch: perf::Watch,
    tasks: Tasks,
    n_samples: u64,
    n_lost: u64,
    /// Why there is no BPF program.
    instead: Gap,
    /// We are in a PID namespace: samples say numbers of that, and 0, which is also that of the idle
    /// task, for all processes outside of it.
    is_inside: bool,
}

impl Source {
    /// The best source that works here, or why there is none.
    pub(super) fn open(host: &Host, hz: u32, room: Duration) -> Result<(Self, Options), Gap> {
        if !host.is_live() {
            return Err(bpf::not_running(NAME));
        }
        let n_cores = machine::possible_cpus(host)
            .map_err(|error| Gap::new(NAME, error.why(), error.chain()))?;
        let options = Options { n_cores, hz, room };
        let by_perf = |instead| ByPerf::open(host, options, instead);
        let source = match load(host, options) {
            Ok(watch) => Self::Bpf(Box::new(ByBpf {
                watch,
                told: Told::new(n_cores),
            })),
            Err(gap) => Self::Perf(Box::new(by_perf(gap)?)),
        };
        Ok((source, options))
    }

    /// Why samples come from events of perf, if they do.
    pub(super) fn instead_of_bpf(&self) -> Option<&Gap> {
        match self {
            Self::Bpf(_) => None,
            Self::Perf(perf) => Some(&perf.instead),
        }
    }

    /// Whether the numbers of processes that samples say are those that we see.
    pub(super) fn says_our_numbers(&self, host: &Host) -> bool {
        match self {
            Self::Bpf(_) => process::numbers_are_the_kernels(host),
            Self::Perf(_) => true,
        }
    }

    /// Whether what is sampled as the idle task may be a process outside of our namespace.
    pub(super) fn hides_outsiders(&self) -> bool {
        matches!(self, Self::Perf(perf) if perf.is_inside)
    }

    /// The cores that are sampled.
    pub(super) fn cores(&self) -> Vec<u32> {
        match self {
            Self::Bpf(bpf) => bpf.watch.cores(),
            Self::Perf(perf) => perf.watch.cores(),
        }
    }

    /// Begins to sample a core. Fails for one that is offline.
    pub(super) fn sample_core(&mut self, cpu: u32) -> io::Result<()> {
        match self {
            Self::Bpf(bpf) => {
                bpf.watch.sample_core(cpu)?;
                // The timer is an event of perf too, so this one is not refused either.
                bpf.told.watch_core(cpu)
            }
            Self::Perf(perf) => perf.watch.watch_core(cpu),
        }
    }

    /// Ends it.
    pub(super) fn forget_core(&mut self, cpu: u32) {
        match self {
            Self::Bpf(bpf) => {
                bpf.watch.forget_core(cpu);
                bpf.told.forget_core(cpu);
            }
            Self::Perf(perf) => perf.watch.forget_core(cpu),
        }
    }

    /// Hands over what was sampled, and takes note of what processes have mapped; returns how
    /// many records made no sense.
    pub(super) fn drain(
        &mut self,
        host: &Host,
        spaces: &mut Spaces,
        most: usize,
        mut take: impl FnMut(Sample),
    ) -> u64 {
        match self {
            // In this order: what a sampled process had mapped has been told by then.
            Self::Bpf(bpf) => bpf.watch.drain(most, take) + bpf.told.drain(spaces),
            Self::Perf(perf) => perf.drain(host, spaces, &mut take),
        }
    }

    /// Records of mappings that found no room, where they have a ring of their own.
    pub(super) fn n_lost_mappings(&self) -> u64 {
        match self {
            Self::Bpf(bpf) => bpf.told.n_lost(),
            Self::Perf(_) => 0,
        }
    }

    /// What was taken and lost since it began.
    pub(super) fn tally(&self) -> Tally {
        match self {
            Self::Bpf(bpf) => bpf.watch.tally(),
            Self::Perf(perf) => {
                let n_lost = perf.watch.n_lost();
                Tally {
                    n_taken: perf.n_samples + n_lost,
                    n_lost,
                }
            }
        }
    }
}

fn load(host: &Host, options: Options) -> Result<Watch, Gap> {
    if let Some(gap) = bpf::refusal(NAME, host) {
        return Err(gap);
    }
    Watch::load(options).map_err(|error| bpf::gap(NAME, host, &error, "sudo sexton record"))
}

impl ByPerf {
    fn open(host: &Host, options: Options, instead: Gap) -> Result<Self, Gap> {
        let cores = machine::online_cpus(host).unwrap_or_default();
        let first = cores.first().copied().unwrap_or(0);
        if let Err(error) = perf::Watch::may_sample(first) {
            return Err(match instead.why {
                Why::Denied => instead,
                _ => refused(&error),
            });
        }
        Ok(Self {
            watch: perf::Watch::new(Ask::Stacks(options.period()), ring_bytes(options)),
            tasks: Tasks::default(),
            n_samples: 0,
            n_lost: 0,
            instead,
            is_inside: !process::numbers_are_the_kernels(host),
        })
    }

    fn drain(&mut self, host: &Host, spaces: &mut Spaces, take: &mut impl FnMut(Sample)) -> u64 {
        let (tasks, n_samples) = (&mut self.tasks, &mut self.n_samples);
        let malformed = self.watch.drain(|record| match &record.what {
            What::Sample(sample) => {
                *n_samples += 1;
                take(describe(host, tasks, (record.at_ns, record.cpu), sample));
            }
            other => {
                tasks.note(host, other);
                spaces.note(record);
            }
        });
        self.tasks.forget_exited();
        forget_if_lost(spaces, &mut self.n_lost, self.watch.n_lost());
        malformed
    }
}

/// Room for the samples of a core.
fn ring_bytes(options: Options) -> usize {
    let samples = u64::from(options.hz) * options.room.as_secs().max(1);
    let bytes = usize::try_from(samples).unwrap_or(usize::MAX);
    let bytes = bytes.saturating_mul(SAMPLE_BYTES);
    bytes.clamp(*RING_BYTES.start(), *RING_BYTES.end())
}

/// A sample of perf with what is known of its task.
pub(super) fn describe(
    host: &Host,
    tasks: &mut Tasks,
    (at_ns, cpu): (u64, u32),
    sample: &perf::Sample,
) -> Sample {
    let is_idle = sample.tid == 0;
    let task = match sample.tid {
        0 | EXITING => None,
        tid => tasks.get(host, tid),
    };
    let comm = match task {
        Some(task) => task.comm.to_vec(),
        None if is_idle => format!("swapper/{cpu}").into_bytes(),
        None => b"[exited]".to_vec(),
    };
    Sample {
        at_ns,
        cgroup_id: 0,
        in_v2: false,
        mm: task.map_or(0, |task| task.program),
        cpu,
        pid: sample.pid,
        tid: sample.tid,
        state: match sample.kernel.is_empty() {
            _ if is_idle => State::Idle,
            true => State::User,
            false => State::Kernel,
        },
        comm,
        kernel: sample.kernel.clone(),
        user: if is_idle {
            Vec::new()
        } else {
            sample.user.clone()
        },
    }
}
