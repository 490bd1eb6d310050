//! The values of every core and instance, once a second.

use sexton_bpf::prog::napi::{Core, Instance, Watch};
use sexton_model::fact::napi as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use super::NAME;
use super::stalls::Wait;
use crate::delays::Delays;
use crate::tasks;

/// Polls between two samples: a stall must be seen at once, a percentile need not.
const POLLS_PER_SAMPLE: u64 = 4;

const N_BUCKETS: usize = 37;
const NET_TX: usize = 0;
const NET_RX: usize = 1;
const THREADS: usize = 2;

/// Threads and instances that are kept before those that have been silent are forgotten.
/// Half of what the program has room for.
const MAX_THREADS: usize = 512;
const MAX_INSTANCES: usize = 1024;

/// Silent for this long is silent.
const SILENT_NS: u64 = 300_000_000_000;

/// An instance with work left that was not polled for this long has been deleted: every
/// driver resets its device before that.
const DELETED_NS: u64 = 60_000_000_000;

pub(super) struct Samples {
    cores: Vec<Read>,
    n_polls: u64,
}

/// What has been read of one core.
struct Read {
    delays: [Delays<N_BUCKETS>; 3],
    n_unknown: u64,
}

impl Samples {
    pub(super) fn new(n_cores: u32) -> Self {
        let read = || Read {
            delays: [Delays::new(), Delays::new(), Delays::new()],
            n_unknown: 0,
        };
        Self {
            cores: (0..n_cores).map(|_| read()).collect(),
            n_polls: 0,
        }
    }

    /// Takes samples if it is time for them.
    pub(super) fn take(
        &mut self,
        watch: &mut Watch,
        cores: &[Core],
        waits: &[Wait],
        out: &mut Sink,
    ) {
        self.n_polls += 1;
        if !self.n_polls.is_multiple_of(POLLS_PER_SAMPLE) {
            return;
        }
        for ((cpu, core), read) in (0..).zip(cores).zip(&mut self.cores) {
            let here = waits.iter().filter(|wait| wait.cpu == cpu);
            let oldest = oldest_ns(here, out);
            read.sample(cpu, core, oldest, out);
            watch.reset_longest(cpu);
        }
        let oldest = oldest_ns(waits.iter(), out);
        out.sample(&Subject::node(), &fact::NAPI_WAIT_NS, oldest as f64);
        sample_instances(watch, out);
        forget_silent_threads(watch, out.now().as_ns());
    }
}

fn oldest_ns<'a>(waits: impl Iterator<Item = &'a Wait>, out: &Sink) -> u64 {
    let ages = waits.map(|wait| out.now().as_ns().saturating_sub(wait.since_ns));
    ages.max().unwrap_or(0)
}

impl Read {
    /// A core without network work in the interval has nothing to say.
    fn sample(&mut self, cpu: u32, core: &Core, oldest_ns: u64, out: &mut Sink) {
        let subject = Subject::cpu(cpu);
        let lost = core.n_unknown.wrapping_sub(self.n_unknown);
        self.n_unknown = core.n_unknown;
        if lost > 0 {
            let text = "more threaded NAPI tasks or instances than can be kept apart";
            out.gap(&subject, Gap::new(NAME, Why::Lost(lost), text));
        }
        let mut intervals = self.delays.iter_mut().zip(&core.delays);
        let intervals = [(); 3].map(|()| intervals.next().map(|(read, new)| read.advance(new.n)));
        let had = |at: usize| {
            intervals[at]
                .as_ref()
                .filter(|interval| interval.percentile_ns(100).is_some())
        };
        if oldest_ns > 0 || (0..3).any(|at| had(at).is_some()) {
            out.sample(&subject, &fact::NAPI_WAIT_NS, oldest_ns as f64);
        }
        for (at, max) in [
            (NET_TX, &fact::NAPI_TX_DELAY_MAX_NS),
            (NET_RX, &fact::NAPI_DELAY_MAX_NS),
            (THREADS, &fact::NAPI_THREAD_DELAY_MAX_NS),
        ] {
            if had(at).is_some() {
                out.sample(&subject, max, core.longest_ns[at] as f64);
            }
        }
        let percentiles = [
            (50, &fact::NAPI_DELAY_P50_NS),
            (99, &fact::NAPI_DELAY_P99_NS),
        ];
        for (hundredths, fact) in percentiles {
            if let Some(ns) = had(NET_RX).and_then(|interval| interval.percentile_ns(hundredths)) {
                out.sample(&subject, fact, ns as f64);
            }
        }
    }
}

fn sample_instances(watch: &mut Watch, out: &mut Sink) {
    let now_ns = out.now().as_ns();
    let epoch = watch.next_epoch();
    let instances = watch.instances();
    let is_full = instances.len() > MAX_INSTANCES;
    for (address, instance) in instances {
        let silent_ns = now_ns.saturating_sub(instance.polled_ns);
        let is_pending = instance.pending != 0;
        if (is_pending && silent_ns > DELETED_NS) || (is_full && silent_ns > SILENT_NS) {
            watch.forget_instance(address);
            continue;
        }
        let ended_ns = (instance.epoch == epoch).then_some(instance.longest_ns);
        let gap_ns = ended_ns.max(is_pending.then_some(silent_ns));
        if let Some(gap_ns) = gap_ns {
            out.sample(
                &subject_of(&instance),
                &fact::NAPI_POLL_GAP_NS,
                gap_ns as f64,
            );
        }
    }
}

/// Instances without an id, such as a core's own backlog, are told apart by their core.
fn subject_of(instance: &Instance) -> Subject {
    let device = match tasks::name_of(&instance.device) {
        name if name.is_empty() => "backlog".into(),
        name => name,
    };
    let name = match instance.napi_id {
        0 => format!("{device}/cpu-{}", instance.cpu),
        id => format!("{device}/napi-{id}"),
    };
    Subject::new(SubjectKind::Queue, name)
}

fn forget_silent_threads(watch: &mut Watch, now_ns: u64) {
    let threads = watch.threads();
    if threads.len() <= MAX_THREADS {
        return;
    }
    for (pid, thread) in threads {
        if thread.since_ns == 0 && now_ns.saturating_sub(thread.seen_ns) > SILENT_NS {
            watch.forget_thread(pid);
        }
    }
}
