//! What threads waited for, and who woke them: the event `off-cpu` beside that of the clock.
//!
//! The innermost frame of such a stack says who woke the thread. Only BPF can tell.

use std::sync::Arc;
use std::time::Duration;

use sexton_bpf::prog::offcpu::{Options, Tally, Wait, Waker, Watch};
use sexton_host::{Host, process};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::stack::{CodeKind, CoreState, StackSample};
use sexton_symbols::live::Place;

use super::names::Names;
use super::place::Batch;
use super::{HOST_NAMESPACE, NAME};
use crate::bpf;

/// What perf calls them, too.
const EVENT: &str = "off-cpu";
/// The module of a frame that says who woke the thread.
const WAKER: &str = sexton_model::stack::WAKER;

/// Functions in which every wait ends: they say nothing of it.
const OF_ALL: [&str; 2] = ["__schedule", "schedule"];

/// Threads that wait, as a BPF program tells.
#[derive(Debug)]
pub(super) struct Waits {
    watch: Watch,
    event: Arc<str>,
    module: Arc<str>,
    /// What has been told.
    told: Tally,
}

impl Waits {
    /// Begins to watch all processes, or those that will be chosen.
    pub(super) fn open(host: &Host, shortest: Duration, only_chosen: bool) -> Result<Self, Gap> {
        let refused = |gap| bpf::not_without("off-CPU time", gap);
        let n_cores = bpf::possible_cores(NAME, host).map_err(refused)?;
        if !process::numbers_are_the_kernels(host) {
            let text = "no off-CPU time in a PID namespace: its processes cannot be told";
            return Err(Gap::new(NAME, Why::Unsupported, text).with_remedy(HOST_NAMESPACE));
        }
        let options = Options {
            n_cores,
            shortest,
            only_chosen,
        };
        let watch = Watch::open(options)
            .map_err(|error| refused(bpf::gap(NAME, host, &error, "sudo sexton record")))?;
        Ok(Self {
            watch,
            event: EVENT.into(),
            module: WAKER.into(),
            told: Tally::default(),
        })
    }

    /// Chooses a process, and what it starts from now on.
    pub(super) fn choose(&mut self, pid: u32) -> std::io::Result<()> {
        self.watch.choose(pid)
    }

    /// The waits that ended since the last time, and how many made no sense.
    pub(super) fn drain(&mut self, most: usize) -> (Vec<Wait>, u64) {
        let mut waits = Vec::new();
        let malformed = self.watch.drain(most, |wait| waits.push(wait));
        (waits, malformed)
    }

    /// What was lost since it was asked last, in sentences, and how many waits that are.
    pub(super) fn new_losses(&mut self) -> Vec<(u64, String)> {
        let tally = self.watch.tally();
        let before = std::mem::replace(&mut self.told, tally);
        losses(Tally {
            n_waits: tally.n_waits - before.n_waits,
            n_lost: tally.n_lost - before.n_lost,
            lost_ns: tally.lost_ns - before.lost_ns,
            n_unseen: tally.n_unseen - before.n_unseen,
        })
    }

    /// All that was lost.
    pub(super) fn losses(&self) -> Vec<(u64, String)> {
        losses(self.watch.tally())
    }

    /// Adds a wait to a batch, given its cgroup and the places in its program.
    pub(super) fn keep(
        &self,
        (host, names): (&Host, &mut Names),
        wait: &Wait,
        (cgroup, user): (Option<Arc<str>>, &[Place]),
        batch: &mut Batch,
        now: Moment,
    ) {
        let kernel = names.kernel_places(host, &wait.kernel, now);
        let is_of_all = |place: &&Arc<Place>| {
            let name = place.symbol.as_deref();
            name.is_some_and(|name| OF_ALL.contains(&name))
        };
        let kernel = &kernel[kernel.iter().take_while(is_of_all).count()..];
        let woken_by = wait.waker.as_ref();
        let woken_by = woken_by.and_then(|waker| self.woken_by((host, &mut *names), waker, now));
        let outermost_first = user.iter().rev();
        let outermost_first = outermost_first.chain(kernel.iter().rev().map(|place| &**place));
        let stack = batch.stack(outermost_first.chain(&woken_by));
        let comm = names.comm(&wait.comm);
        let sample = StackSample {
            at: Moment::from_ns(wait.at_ns),
            cpu: wait.cpu,
            pid: wait.pid,
            tid: wait.tid,
            comm: batch.name(&comm),
            cgroup: cgroup.map(|cgroup| batch.name(&cgroup)),
            state: CoreState::Waiting,
            event: batch.name(&self.event),
            weight: wait.weight_ns,
            stack,
        };
        batch.push(sample);
    }

    /// The frame that says who woke a thread; `None` where that is not certain.
    fn woken_by(
        &self,
        (host, names): (&Host, &mut Names),
        waker: &Waker,
        now: Moment,
    ) -> Option<Place> {
        let places = names.kernel_places(host, &waker.frames, now);
        let by_interrupt = waker.tid == 0 || places.iter().any(|place| place.is_interrupt());
        let who = if by_interrupt && places.iter().any(|place| place.is_timer()) {
            "a timer".into()
        } else if by_interrupt {
            "an interrupt".into()
        } else if waker.is_whole() && !names.kernel.is_hidden() {
            names.comm(&waker.comm)
        } else {
            // There may have been an interrupt.
            return None;
        };
        Some(Place {
            kind: CodeKind::Unknown,
            symbol: Some(format!("woken by {who}").into()),
            module: Some(Arc::clone(&self.module)),
            address: 0,
        })
    }
}

fn losses(tally: Tally) -> Vec<(u64, String)> {
    let mut lost = Vec::new();
    let n = tally.n_lost;
    if n > 0 {
        let seconds = Duration::from_nanos(tally.lost_ns).as_secs_f64();
        let text = format!("dropped {n} off-CPU samples ({seconds:.1} s): ring buffer full");
        lost.push((n, text));
    }
    let n = tally.n_unseen;
    if n > 0 {
        let text =
            format!("did not follow the waits of {n} tasks: the kernel had no memory for them");
        lost.push((n, text));
    }
    lost
}
