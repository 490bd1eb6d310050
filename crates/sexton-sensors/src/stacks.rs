//! Samples what every core runs: who, where in the kernel and in the program, on which core,
//! at which nanosecond.
//!
//! Source: a BPF program on a timer of each core, or events of perf on the same timer where no
//! program can be loaded. Samples go to the recording one by one, in tables of their own;
//! records tell only who had the most kernel time, and which statistics of memory cgroups that had
//! open (`/proc/PID/fd`, once a second).
//! Blind to: code that runs with interrupts off, which is sampled where they come on again;
//! callers above code without frame pointers; functions of stripped programs; files of
//! containers that end within a quarter of a second.
//! Overhead: `docs/overhead.md#stacks`.

mod busiest;
mod heard;
mod homes;
mod made;
mod names;
pub mod one;
mod place;
mod pointers;
mod source;
mod statistics;
mod told;
pub mod waits;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sexton_bpf::prog::stacks::{Sample, State};
use sexton_host::perf::Spaces;
use sexton_host::{Host, machine};
use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
use sexton_model::fact::stack as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::stack::{CoreState, StackSample};
use sexton_model::subject::Subject;
use sexton_symbols::live::{Kernel, Place, Programs, Ran};

use crate::{Opener, Sensor, SensorSpec, bpf};
use busiest::{Busiest, Seen};
use heard::Heard;
use homes::Homes;
use made::Made;
use names::Names;
use place::Batch;
use source::Source;
use statistics::Statistics;
use waits::Waits;

/// What the sensor is called.
pub const NAME: &str = "stacks";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "what every core runs, sampled: functions of kernel and programs",
    emits: &[
        &fact::PROCESS_ON_CORE.fact,
        &fact::CPU_USE.fact,
        &fact::STACK_SAMPLES,
        &fact::STACK_SAMPLES_LOST,
        &SEXTON_STEP_DOWN.fact,
    ],
    every: Duration::from_millis(250),
    deadline: Duration::from_secs(5),
    examine,
    open,
};

/// Samples a second on each core that can be asked for.
pub const RATES_HZ: RangeInclusive<u32> = 1..=999;

/// Not a round number, so that what happens a hundred times a second is not always, or
/// never, seen.
pub const DEFAULT_RATE_HZ: u32 = 99;

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Samples a second on each core. Rates out of range are brought into it.
    pub hz: u32,
    /// Waits of at least this time are told too.
    pub off_cpu: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hz: DEFAULT_RATE_HZ,
            off_cpu: None,
        }
    }
}

impl Settings {
    /// Opens the sensor that samples this.
    pub fn opener(self) -> Opener {
        Arc::new(move |host| open_with(host, self))
    }
}

/// What the software clock of a core is called by `perf`.
const EVENT: &str = "cpu-clock";

/// Samples that one poll takes at most.
const MAX_DRAINED: usize = 1 << 16;
/// Samples must find room even when a poll is late: it may have to read the symbols of a
/// large program from a slow disk.
const ROOM: Duration = Duration::from_secs(3);
/// How often cores that came or went are looked for, and counts are told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What a process outside of our PID namespace is called.
const OUTSIDE: &[u8] = b"[outside]";

const HOST_NAMESPACE: &str = "run in the host's PID namespace (docker run --pid=host)";

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "samples of every core";
    const SHOWS: &str = "each core's software clock; kernel and user stacks by frame pointers";
    let can = Source::open(host, DEFAULT_RATE_HZ, ROOM).and_then(|(mut source, _)| {
        let cores = machine::online_cpus(host).unwrap_or_default();
        let first = cores.first().copied().unwrap_or(0);
        source.sample_core(first).map_err(|error| refused(&error))?;
        Ok(source)
    });
    let source = match can {
        Ok(source) => source,
        Err(gap) => return vec![bpf::blind(WHAT, gap)],
    };
    let samples = match source.instead_of_bpf() {
        None => Sight::sees(WHAT, format!("BPF on {SHOWS}")),
        Some(gap) => bpf::instead(WHAT, &format!("perf events on {SHOWS}"), gap),
    };
    vec![samples, kernel_names(host), pointers::examine(host)]
}

fn kernel_names(host: &Host) -> Sight {
    const WHAT: &str = "kernel functions";
    let own = sexton_host::clock::now();
    let mut kernel = Kernel::default();
    // Any address will do: the table is read for the first one.
    kernel.place(host, u64::MAX, own);
    if kernel.is_hidden() {
        let gap = hidden();
        return bpf::blind(WHAT, gap);
    }
    Sight::sees(
        WHAT,
        "/proc/kallsyms: the kernel, its modules, BPF programs",
    )
}

fn hidden() -> Gap {
    let text = "the kernel hides its addresses (/proc/kallsyms), so its functions have no names";
    Gap::new(NAME, Why::Denied, text)
        .with_remedy("run as root with CAP_SYSLOG, or: sysctl kernel.kptr_restrict=0")
}

fn refused(error: &std::io::Error) -> Gap {
    let text = format!("no core lets itself be sampled: {error}");
    Gap::new(NAME, Why::Denied, text)
        .with_remedy("allow perf_event_open: seccomp, or kernel.perf_event_paranoid, stops it")
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    open_with(host, Settings::default())
}

fn open_with(host: &Host, settings: Settings) -> Result<Box<dyn Sensor>, Gap> {
    let hz = settings.hz.clamp(*RATES_HZ.start(), *RATES_HZ.end());
    let (source, options) = Source::open(host, hz, ROOM)?;
    let programs = source.says_our_numbers(host);
    let waits = settings.off_cpu;
    let waits = waits.map(|shortest| Waits::open(host, shortest, false));
    let (waits, no_waits) = match waits {
        None => (None, None),
        Some(Ok(waits)) => (Some(waits), None),
        Some(Err(gap)) => (None, Some(gap)),
    };
    let with_bpf = source.instead_of_bpf().is_none();
    let mut stacks = Stacks {
        source,
        period_ns: u64::try_from(options.period().as_nanos()).unwrap_or(u64::MAX),
        names: Names::default(),
        heard: Heard::new(options.period()),
        programs: programs.then(Programs::default),
        spaces: Spaces::default(),
        made: with_bpf.then(|| Made::open(host)),
        homes: Homes::default(),
        busiest: Busiest::new(options.period()),
        event: EVENT.into(),
        waits,
        no_waits,
        looked_at: None,
        n_lost: 0,
        n_lost_mappings: 0,
        told_once: false,
    };
    let refusals = stacks.follow_cores(host, sexton_host::clock::now());
    match refusals.into_iter().next() {
        Some((_, error)) if stacks.source.cores().is_empty() => Err(refused(&error)),
        _ => Ok(Box::new(stacks)),
    }
}

/// The sensor.
struct Stacks {
    source: Source,
    period_ns: u64,
    names: Names,
    /// When each core was last sampled.
    heard: Heard,
    /// `None` where the kernel's numbers of processes are not ours.
    programs: Option<Programs>,
    /// What processes have mapped that may be gone by now.
    spaces: Spaces,
    /// Beside samples of BPF. Without it BPF programs that come have no names.
    made: Option<Made>,
    homes: Homes,
    busiest: Busiest,
    event: Arc<str>,
    /// Waits of threads, if they were asked for.
    waits: Option<Waits>,
    /// Why there are none, though they were asked for.
    no_waits: Option<Gap>,
    looked_at: Option<Moment>,
    /// Losses that have been told.
    n_lost: u64,
    n_lost_mappings: u64,
    /// What is blind for good has been told.
    told_once: bool,
}

impl Sensor for Stacks {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let mut samples = Vec::new();
        let spaces = &mut self.spaces;
        let take = |sample| samples.push(sample);
        let malformed = self.source.drain(host, spaces, MAX_DRAINED, take);
        let made = self.made.as_mut().and_then(Made::take);
        self.names.kernel.note_made(made);
        self.note_heard(&samples, out.now());
        // What is mapped is asked for before any name, which takes longer: some processes
        // are about to end.
        if let Some(programs) = &mut self.programs {
            for sample in samples.iter().filter(|sample| !sample.user.is_empty()) {
                programs.know(host, (ran(sample), &self.spaces), out.now());
            }
        }
        let mut batch = Batch::default();
        for sample in &samples {
            self.keep(host, sample, &mut batch, out.now());
        }
        let malformed = malformed + self.keep_waits(host, &mut batch, out.now());
        if let Some(batch) = batch.finish() {
            out.stacks(batch);
        }
        let exited = self.spaces.forget_exited();
        if let Some(programs) = &mut self.programs {
            programs.forget(&exited);
        }
        if malformed > 0 {
            let text = format!("{malformed} samples made no sense");
            out.gap(&Subject::node(), Gap::new(NAME, Why::Bug, text));
        }
        let due = |last: Moment| out.now().since(last) >= LOOK_EVERY;
        if self.looked_at.is_none_or(due) {
            self.looked_at = Some(out.now());
            self.look(host, out);
        }
        self.busiest.tell(out);
    }
}

/// Which program was sampled.
fn ran(sample: &Sample) -> Ran {
    Ran {
        pid: sample.pid,
        mm: sample.mm,
        at_ns: sample.at_ns,
    }
}

impl Stacks {
    fn keep(&mut self, host: &Host, sample: &Sample, batch: &mut Batch, now: Moment) {
        let cgroup = match &self.source {
            // In a namespace of PIDs another process may have that number.
            Source::Bpf(_) => {
                let pid = self.programs.as_ref().map(|_| sample.pid);
                self.homes.path(host, (sample.cgroup_id, sample.in_v2), pid)
            }
            Source::Perf(_) => self.homes.of_process(host, (sample.pid, sample.mm), now),
        };
        let kernel = self.names.kernel_places(host, &sample.kernel, now);
        let user = match &mut self.programs {
            Some(programs) if !sample.user.is_empty() => {
                programs.places(host, (ran(sample), &self.spaces), &sample.user, now)
            }
            _ => Vec::new(),
        };
        let is_outside = sample.state == State::Idle && self.is_outsider(&kernel);
        let comm = self
            .names
            .comm(if is_outside { OUTSIDE } else { &sample.comm });
        let serves_softirq = || kernel.iter().any(|place| place.is_softirq());
        let state = match sample.state {
            State::User => CoreState::User,
            State::Kernel => CoreState::Kernel,
            State::Idle if is_outside && kernel.is_empty() => CoreState::User,
            State::Idle if is_outside => CoreState::Kernel,
            // The idle task has the core, and serves what an interrupt brought.
            State::Idle if serves_softirq() => CoreState::Kernel,
            State::Idle => CoreState::Idle,
        };
        let kernel = if state == CoreState::Idle {
            &[][..]
        } else {
            &kernel[..]
        };
        if sample.pid != 0 {
            self.busiest.see(Seen {
                pid: sample.pid,
                cpu: sample.cpu,
                comm: &comm,
                cgroup: cgroup.as_ref(),
                is_kernel: state == CoreState::Kernel,
                kernel,
            });
        }
        let outermost_first = user
            .iter()
            .rev()
            .chain(kernel.iter().rev().map(|place| &**place));
        let stack = batch.stack(outermost_first);
        let sample = StackSample {
            at: Moment::from_ns(sample.at_ns),
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            comm: batch.name(&comm),
            cgroup: cgroup.map(|cgroup| batch.name(&cgroup)),
            state,
            event: batch.name(&self.event),
            weight: self.period_ns,
            stack,
        };
        batch.push(sample);
    }

    /// Adds the waits that ended. Returns how many made no sense.
    fn keep_waits(&mut self, host: &Host, batch: &mut Batch, now: Moment) -> u64 {
        let Some(waits) = &mut self.waits else {
            return 0;
        };
        let (ended, malformed) = waits.drain(MAX_DRAINED);
        let mut programs = self.programs.as_mut();
        for wait in &ended {
            let id = (wait.cgroup_id, wait.in_v2);
            let cgroup = self.homes.path(host, id, Some(wait.pid));
            let ran = Ran {
                pid: wait.pid,
                mm: wait.mm,
                at_ns: wait.at_ns,
            };
            let user = match &mut programs {
                Some(programs) if !wait.user.is_empty() => {
                    programs.places(host, (ran, &self.spaces), &wait.user, now)
                }
                _ => Vec::new(),
            };
            waits.keep((host, &mut self.names), wait, (cgroup, &user), batch, now);
        }
        malformed
    }

    /// Whether what seems to be the idle task is a process that has no number here: it is not where
    /// the idle task waits.
    fn is_outsider(&self, kernel: &[Arc<Place>]) -> bool {
        let waits = || kernel.iter().any(|place| place.is_idle_loop());
        self.source.hides_outsiders() && !self.names.kernel.is_hidden() && !waits()
    }

    /// What is done once a second: cores, counts, and what is blind.
    fn look(&mut self, host: &Host, out: &mut Sink) {
        self.renew_quiet(out);
        for (cpu, error) in self.follow_cores(host, out.now()) {
            let text = format!("core {cpu} cannot be sampled: {error}");
            out.gap(&Subject::cpu(cpu), Gap::new(NAME, Why::Denied, text));
        }
        let tally = self.source.tally();
        let node = Subject::node();
        out.sample(&node, &fact::STACK_SAMPLES, tally.n_taken as f64);
        out.sample(&node, &fact::STACK_SAMPLES_LOST, tally.n_lost as f64);
        let new = tally.n_lost - self.n_lost;
        self.n_lost = tally.n_lost;
        if new > 0 {
            self.busiest.lose(new);
            let text = format!("dropped {new} stack samples: ring buffer full");
            out.gap(&node, Gap::new(NAME, Why::Lost(new), text));
        }
        let n_mappings = self.source.n_lost_mappings();
        let new = n_mappings - self.n_lost_mappings;
        self.n_lost_mappings = n_mappings;
        if new > 0 {
            let text = format!(
                "dropped {new} records of mapped code (ring buffer full): \
                 some short-lived processes have no names"
            );
            out.gap(&node, Gap::new(NAME, Why::Lost(new), text));
        }
        let lost = self.waits.as_mut().map(Waits::new_losses);
        for (n, text) in lost.unwrap_or_default() {
            out.gap(&node, Gap::new(NAME, Why::Lost(n), text));
        }
        // In a namespace of PIDs another process may have that number.
        if self.programs.is_some() {
            let statistics = Statistics::find(host);
            let busiest = &mut self.busiest;
            busiest.note_of_hot(out.now(), |pid, known| statistics.note(host, pid, known));
        }
        if !self.told_once {
            self.told_once = true;
            self.tell_blind(out);
        }
    }

    fn tell_blind(&self, out: &mut Sink) {
        if let Some(gap) = &self.no_waits {
            out.gap(&Subject::node(), gap.clone());
        }
        if let Some(gap) = self.source.instead_of_bpf() {
            bpf::tell_step_down("stacks", "perf events", gap, out);
        }
        if self.names.kernel.is_hidden() {
            out.gap(&Subject::node(), hidden());
        }
        if self.source.hides_outsiders() {
            let text = "we are in a PID namespace: samples of processes outside of it have no name";
            let gap = Gap::new(NAME, Why::Unsupported, text).with_remedy(HOST_NAMESPACE);
            out.gap(&Subject::node(), gap);
        }
        if self.programs.is_none() {
            let text = "we are in a PID namespace: user stacks are not kept, because their \
                        processes cannot be told";
            let gap = Gap::new(NAME, Why::Unsupported, text).with_remedy(HOST_NAMESPACE);
            out.gap(&Subject::node(), gap);
        }
    }

    /// Samples cores that came, and lets go of those that went. Returns those that refuse.
    fn follow_cores(&mut self, host: &Host, now: Moment) -> Vec<(u32, std::io::Error)> {
        let Ok(online) = machine::online_cpus(host) else {
            return Vec::new();
        };
        if let Some(made) = &mut self.made {
            made.follow_cores(&online);
        }
        let sampled = self.source.cores();
        for gone in sampled.iter().filter(|cpu| !online.contains(cpu)) {
            self.forget_core(*gone);
        }
        let mut refused = Vec::new();
        for cpu in online.into_iter().filter(|cpu| !sampled.contains(cpu)) {
            match self.source.sample_core(cpu) {
                Ok(()) => self.heard.note(cpu, now),
                Err(error) => refused.push((cpu, error)),
            }
        }
        refused
    }

    fn note_heard(&mut self, samples: &[Sample], now: Moment) {
        self.heard.note_all(samples);
        // What is still in the ring may be newer, and of any core.
        if samples.len() >= MAX_DRAINED {
            let sampled = self.source.cores();
            sampled.iter().for_each(|cpu| self.heard.note(*cpu, now));
        }
    }

    /// Forgets cores that are not sampled any more, so that they get a new timer.
    fn renew_quiet(&mut self, out: &mut Sink) {
        for (cpu, time) in self.heard.quiet(out.now()) {
            self.forget_core(cpu);
            let text = format!(
                "core {cpu} was not sampled for {time:.1?}: it was taken away, or the machine stood still"
            );
            out.gap(&Subject::cpu(cpu), Gap::new(NAME, Why::Vanished, text));
        }
    }

    fn forget_core(&mut self, cpu: u32) {
        self.source.forget_core(cpu);
        self.heard.forget(cpu);
    }
}
