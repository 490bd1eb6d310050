//! Samples of one process, its threads and what it starts: `sexton profile record`.
//!
//! Source: events of perf on the clock of each task, which need no root for one's own processes.
//! Blind to: what the process did before; the kernel's part of stacks where the kernel does not
//! allow it (`kernel.perf_event_paranoid`).

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use sexton_host::perf::{OfTasks, Spaces, Target, Tasks, What};
use sexton_host::{Host, clock};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, StackBatch, StackSample};
use sexton_symbols::live::{Programs, Ran};

use super::homes::Homes;
use super::made::Made;
use super::names::Names;
use super::place::Batch;
use super::source::describe;
use super::told::forget_if_lost;
use super::waits::Waits;
use super::{EVENT, NAME, Sample, State, ran};

/// Samples a second of processor time that can be asked for.
pub const RATES_HZ: RangeInclusive<u32> = 1..=9_999;
/// Not a round number, for the same reason as for whole nodes.
pub const DEFAULT_RATE_HZ: u32 = 997;

/// What a core's ring holds. Without root the kernel allows half a megabyte of each core.
const RING_BYTES: usize = 1 << 18;

/// One process that is sampled.
pub struct OneProcess {
    watch: OfTasks,
    tasks: Tasks,
    spaces: Spaces,
    made: Made,
    programs: Programs,
    names: Names,
    homes: Homes,
    event: Arc<str>,
    period_ns: u64,
    n_samples: u64,
    n_lost: u64,
    n_malformed: u64,
    waits: Option<Waits>,
    n_waits: u64,
}

/// Waits that one poll takes at most.
const MAX_WAITS: usize = 1 << 14;

impl OneProcess {
    /// Begins to sample, or says why that is not possible. Waits count if they are no shorter
    /// than `off_cpu`.
    pub fn open(
        host: &Host,
        target: Target,
        hz: u32,
        off_cpu: Option<Duration>,
    ) -> Result<Self, Gap> {
        let waits = off_cpu.map(|shortest| Waits::open(host, shortest, true));
        let mut waits = waits.transpose()?;
        if let Some(waits) = &mut waits {
            // What is started is a child of ours.
            let pid = match target {
                Target::Process(pid) => pid,
                Target::Started => std::process::id(),
            };
            waits.choose(pid).map_err(|error| {
                let text = format!("cannot follow the waits of process {pid}: {error}");
                Gap::new(NAME, Why::Denied, text)
            })?;
        }
        let hz = hz.clamp(*RATES_HZ.start(), *RATES_HZ.end());
        let period = Duration::from_secs(1) / hz;
        let watch = OfTasks::open(host, target, period, RING_BYTES)
            .map_err(|error| refused(&error, target))?;
        let (mut tasks, mut programs) = (Tasks::default(), Programs::default());
        let spaces = Spaces::default();
        if let Target::Process(pid) = target {
            // It may exit soon, and no record will tell what it has mapped.
            let ran = Ran {
                pid,
                mm: tasks.get(host, pid).map_or(0, |task| task.program),
                at_ns: clock::now().as_ns(),
            };
            programs.know(host, (ran, &spaces), clock::now());
        }
        let mut names = Names::default();
        let mut made = Made::open(host);
        names.kernel.note_made(made.take());
        if watch.has_kernel() {
            // The table of the kernel's names takes long to read: before there are samples.
            names.kernel.place(host, u64::MAX, clock::now());
        }
        Ok(Self {
            watch,
            tasks,
            spaces,
            made,
            programs,
            names,
            homes: Homes::default(),
            event: EVENT.into(),
            period_ns: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            n_samples: 0,
            n_lost: 0,
            n_malformed: 0,
            waits,
            n_waits: 0,
        })
    }

    /// What was sampled since the last time.
    pub fn poll(&mut self, host: &Host) -> Option<StackBatch> {
        let now = clock::now();
        let mut samples = Vec::new();
        let (tasks, spaces) = (&mut self.tasks, &mut self.spaces);
        self.n_malformed += self.watch.drain(|record| match &record.what {
            What::Sample(sample) => {
                samples.push(describe(host, tasks, (record.at_ns, record.cpu), sample));
            }
            other => {
                tasks.note(host, other);
                spaces.note(record);
            }
        });
        self.names.kernel.note_made(self.made.take());
        self.tasks.forget_exited();
        forget_if_lost(&mut self.spaces, &mut self.n_lost, self.watch.n_lost());
        for sample in samples.iter().filter(|sample| !sample.user.is_empty()) {
            self.programs.know(host, (ran(sample), &self.spaces), now);
        }
        let mut batch = Batch::default();
        for sample in &samples {
            self.keep(host, sample, &mut batch, now);
        }
        self.n_samples += samples.len() as u64;
        self.keep_waits(host, &mut batch, now);
        self.programs.forget(&self.spaces.forget_exited());
        batch.finish()
    }

    /// Adds the waits that ended.
    fn keep_waits(&mut self, host: &Host, batch: &mut Batch, now: Moment) {
        let Some(waits) = &mut self.waits else {
            return;
        };
        let (ended, malformed) = waits.drain(MAX_WAITS);
        self.n_malformed += malformed;
        let own = std::process::id();
        for wait in ended.iter().filter(|wait| wait.pid != own) {
            // Samples of perf have no other mark of a program.
            let mm = self
                .tasks
                .get(host, wait.tid)
                .map_or(0, |task| task.program);
            let cgroup = self.homes.of_process(host, (wait.pid, mm), now);
            let ran = Ran {
                pid: wait.pid,
                mm,
                at_ns: wait.at_ns,
            };
            let user = if wait.user.is_empty() {
                Vec::new()
            } else {
                let of = (ran, &self.spaces);
                self.programs.places(host, of, &wait.user, now)
            };
            waits.keep((host, &mut self.names), wait, (cgroup, &user), batch, now);
            self.n_waits += 1;
        }
    }

    /// Waits that were told.
    pub fn n_waits(&self) -> u64 {
        self.n_waits
    }

    /// Samples that were taken.
    pub fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// What the recording lacks, in sentences: records that were lost, and the kernel's stacks.
    pub fn lacks(&self) -> Lacks {
        let mut lost = Vec::new();
        if self.n_lost > 0 {
            let n = self.n_lost;
            lost.push(format!("dropped {n} records: ring buffer full"));
        }
        if self.n_malformed > 0 {
            let n = self.n_malformed;
            lost.push(format!("{n} records of the kernel made no sense"));
        }
        let waits = self.waits.as_ref().map(Waits::losses);
        lost.extend(waits.unwrap_or_default().into_iter().map(|(_, text)| text));
        let n_throttled = self.watch.n_throttled();
        if n_throttled > 0 {
            lost.push(format!(
                "the kernel paused sampling {n_throttled} times because it took too much time; \
                 a lower --hz avoids that"
            ));
        }
        let kernel = if !self.watch.has_kernel() {
            Some(
                "stacks have no kernel functions (kernel.perf_event_paranoid): run as root, or: \
                 sysctl kernel.perf_event_paranoid=1",
            )
        } else if self.names.kernel.is_hidden() {
            Some(
                "kernel functions have no names (/proc/kallsyms hides addresses): run as root, \
                 or: sysctl kernel.kptr_restrict=0",
            )
        } else {
            None
        };
        Lacks { lost, kernel }
    }

    fn keep(&mut self, host: &Host, sample: &Sample, batch: &mut Batch, now: Moment) {
        let process = (sample.pid, sample.mm);
        let cgroup = self.homes.of_process(host, process, now);
        let kernel = self.names.kernel_places(host, &sample.kernel, now);
        let user = if sample.user.is_empty() {
            Vec::new()
        } else {
            let of = (ran(sample), &self.spaces);
            self.programs.places(host, of, &sample.user, now)
        };
        let outermost_first = user
            .iter()
            .rev()
            .chain(kernel.iter().rev().map(|place| &**place));
        let stack = batch.stack(outermost_first);
        let comm = self.names.comm(&sample.comm);
        let sample = StackSample {
            at: Moment::from_ns(sample.at_ns),
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            comm: batch.name(&comm),
            cgroup: cgroup.map(|cgroup| batch.name(&cgroup)),
            state: match sample.state {
                State::User => CoreState::User,
                State::Kernel | State::Idle => CoreState::Kernel,
            },
            event: batch.name(&self.event),
            weight: self.period_ns,
            stack,
        };
        batch.push(sample);
    }
}

/// Whether a process has exited.
pub fn has_exited(host: &Host, pid: u32) -> bool {
    let path = host.proc(&format!("{pid}/stat"));
    let Ok(stat) = path.and_then(|path| host.read(path)) else {
        return true;
    };
    // The state follows the name, which may hold anything, in brackets.
    let after = stat.iter().rposition(|byte| *byte == b')');
    let state = after.and_then(|i| stat.get(i + 2));
    matches!(state, Some(b'Z' | b'X' | b'x'))
}

/// What a recording lacks.
#[derive(Debug)]
pub struct Lacks {
    /// What was lost of it: it is not whole.
    pub lost: Vec<String>,
    /// Why it says nothing, or only addresses, of the kernel.
    pub kernel: Option<&'static str>,
}

fn refused(error: &io::Error, target: Target) -> Gap {
    let of = match target {
        Target::Process(pid) => format!("process {pid}"),
        Target::Started => "a program".to_owned(),
    };
    let text = format!("cannot sample {of}: {error}");
    match error.kind() {
        io::ErrorKind::NotFound => Gap::new(NAME, Why::Vanished, text),
        io::ErrorKind::PermissionDenied => Gap::new(NAME, Why::Denied, text).with_remedy(
            "run as root, or for your own processes: sysctl kernel.perf_event_paranoid=2 (in a \
             container seccomp must allow perf_event_open, too)",
        ),
        _ => Gap::new(NAME, Why::Unsupported, text),
    }
}
