//! Tells the judge who had the most kernel time on a core and in which functions, and who had
//! most of all cores.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use sexton_model::fact::stack::{
    CPU_USE, CoreShare, CpuUse, PROCESS_ON_CORE, ProcessOnCore, StackShare,
};
use sexton_model::moment::Moment;
use sexton_model::origin::Origin;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text;
use sexton_symbols::live::Place;

use crate::lineage::Lineage;

/// How long an interval is: half a minute of watching must have three at least, because a reader
/// that was seen less often is only likely, and on a busy node the first look comes late.
const INTERVAL: Duration = Duration::from_secs(5);
/// Processes that one interval reports.
const MAX_TOLD: usize = 10;
/// A process with less of a core in the kernel is not told.
const LEAST_RATIO: f64 = 0.1;
/// Processes that had less than this of one core in all are not told.
const LEAST_USE: f64 = 0.05;
/// Stacks of an interval that are told apart.
const MAX_STACKS: usize = 1 << 14;
/// What is told of a stack, in bytes.
const MAX_STACK_BYTES: usize = 4096;

/// Stacks of a process that are told.
const MAX_STACKS_TOLD: usize = 16;
/// What is told of all stacks of a process, in bytes: sixteen of the depth that reads have.
const MAX_STACKS_BYTES: usize = 8192;

/// A sample, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) pid: u32,
    pub(super) cpu: u32,
    pub(super) comm: &'a Arc<str>,
    pub(super) cgroup: Option<&'a Arc<str>>,
    pub(super) is_kernel: bool,
    /// Places in the kernel, innermost first.
    pub(super) kernel: &'a [Arc<Place>],
}

/// What has been seen in this interval.
#[derive(Debug)]
pub(super) struct Busiest {
    period: Duration,
    /// Our own process: what it costs to look is not the node's trouble.
    own_pid: u32,
    began: Option<Moment>,
    processes: HashMap<u32, Process>,
    n_stacks: usize,
    n_lost: u64,
}

#[derive(Debug)]
struct Process {
    comm: Arc<str>,
    cgroup: Option<Arc<str>>,
    /// Samples by core: all, and in the kernel.
    cores: HashMap<u32, (u64, u64)>,
    stacks: HashMap<u64, (u64, Vec<Arc<Place>>)>,
    /// Statistics of memory cgroups that it was seen to have open.
    statistics: BTreeSet<String>,
}

impl Busiest {
    pub(super) fn new(period: Duration) -> Self {
        Self {
            period,
            own_pid: std::process::id(),
            began: None,
            processes: HashMap::new(),
            n_stacks: 0,
            n_lost: 0,
        }
    }

    pub(super) fn see(&mut self, seen: Seen<'_>) {
        let process = self.processes.entry(seen.pid).or_insert_with(|| Process {
            comm: Arc::clone(seen.comm),
            cgroup: None,
            cores: HashMap::new(),
            stacks: HashMap::new(),
            statistics: BTreeSet::new(),
        });
        // A process may execute another program, or move, within the interval.
        process.comm.clone_from(seen.comm);
        if let Some(cgroup) = seen.cgroup {
            process.cgroup = Some(Arc::clone(cgroup));
        }
        let core = process.cores.entry(seen.cpu).or_default();
        core.0 += 1;
        if !seen.is_kernel {
            return;
        }
        core.1 += 1;
        let mut hasher = DefaultHasher::new();
        seen.kernel.hash(&mut hasher);
        let key = hasher.finish();
        if let Some((n, _)) = process.stacks.get_mut(&key) {
            *n += 1;
        } else if self.n_stacks < MAX_STACKS {
            self.n_stacks += 1;
            process.stacks.insert(key, (1, seen.kernel.to_vec()));
        }
    }

    /// Notes something of those that have much of a core in the kernel in this interval so far.
    pub(super) fn note_of_hot(
        &mut self,
        now: Moment,
        mut note: impl FnMut(u32, &mut BTreeSet<String>),
    ) {
        let so_far = self.began.map_or(Duration::ZERO, |began| now.since(began));
        // A few samples at the beginning make nobody hot.
        let so_far = so_far.max(Duration::from_secs(1));
        let per_core = so_far.as_secs_f64() / self.period.as_secs_f64();
        let own_pid = self.own_pid;
        let is_hot = |process: &Process| process.worst_core().2 as f64 >= LEAST_RATIO * per_core;
        let hot = self.processes.iter_mut();
        let hot = hot.filter(|(pid, process)| **pid != own_pid && is_hot(process));
        for (pid, process) in hot.take(MAX_TOLD) {
            note(*pid, &mut process.statistics);
        }
    }

    pub(super) fn lose(&mut self, n: u64) {
        self.n_lost += n;
    }

    /// Ends the interval, if it is time.
    pub(super) fn tell(&mut self, out: &mut Sink) {
        let now = out.now();
        let began = *self.began.get_or_insert(now);
        let interval = now.since(began);
        if interval < INTERVAL {
            return;
        }
        let per_core = interval.as_secs_f64() / self.period.as_secs_f64();
        self.tell_use(interval, per_core, out);
        let mut hot: Vec<(u32, Process)> = self.processes.drain().collect();
        hot.retain(|(_, process)| process.worst_core().2 as f64 / per_core >= LEAST_RATIO);
        hot.sort_by_key(|(pid, process)| (u64::MAX - process.worst_core().2, *pid));
        hot.truncate(MAX_TOLD);
        for (pid, process) in hot {
            let subject = Subject::new(SubjectKind::Process, pid.to_string());
            let is_own = pid == self.own_pid;
            // Our own work is excluded from every core it was on, not only from the worst.
            let cores = match is_own {
                true => process.cores_above(LEAST_RATIO * per_core),
                false => vec![process.worst_core()],
            };
            for core in cores {
                let says = ProcessOnCore {
                    own: is_own.then_some(true),
                    n_lost: Some(self.n_lost).filter(|n| *n > 0),
                    ..process.describe(core, interval, per_core)
                };
                out.event(now, &subject, &PROCESS_ON_CORE, says);
            }
        }
        (self.began, self.n_stacks, self.n_lost) = (Some(now), 0, 0);
    }
}

/// What makes processes alike: their cgroup, where it is known, their name, and whether they are
/// this program.
type Kind = (Option<Arc<str>>, Arc<str>, bool);

/// Processes of one name in one cgroup.
#[derive(Debug, Default)]
struct Group {
    pids: Vec<u32>,
    n_samples: u64,
    n_kernel: u64,
}

impl Busiest {
    /// Tells who had most of all cores. What builds and storms start comes and goes within the
    /// interval, so processes of one name in one cgroup are told as one.
    fn tell_use(&self, interval: Duration, per_core: f64, out: &mut Sink) {
        let mut groups: HashMap<Kind, Group> = HashMap::new();
        for (pid, process) in &self.processes {
            // The number of a cgroup whose path was not to be had says nothing to anyone.
            let cgroup = process.cgroup.clone().filter(|path| path.starts_with('/'));
            let key = (cgroup, Arc::clone(&process.comm), *pid == self.own_pid);
            let group = groups.entry(key).or_default();
            group.pids.push(*pid);
            group.n_samples += process.cores.values().map(|core| core.0).sum::<u64>();
            group.n_kernel += process.cores.values().map(|core| core.1).sum::<u64>();
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.retain(|(_, group)| group.n_samples as f64 >= LEAST_USE * per_core);
        groups.sort_by(|a, b| {
            b.1.n_samples
                .cmp(&a.1.n_samples)
                .then_with(|| a.0.cmp(&b.0))
        });
        for ((cgroup, comm, is_own), group) in groups.into_iter().take(MAX_TOLD) {
            let subject = match group.pids[..] {
                [pid] => Subject::new(SubjectKind::Process, pid.to_string()),
                _ => Subject::new(SubjectKind::Task, Arc::clone(&comm)),
            };
            let lineage = cgroup
                .as_deref()
                .map(|path| Lineage::of(&text::unescape(path)));
            let lineage = lineage.unwrap_or_default();
            let cores = |n: u64| thousandths(n as f64 / per_core);
            let says = CpuUse {
                comm: comm.to_string(),
                cgroup: cgroup.as_deref().map(str::to_owned),
                unit: lineage.unit,
                container: lineage.container,
                n_processes: group.pids.len() as u64,
                cores: cores(group.n_samples),
                kernel_cores: cores(group.n_kernel),
                interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
                own: is_own.then_some(true),
            };
            out.event(out.now(), &subject, &CPU_USE, says);
        }
    }
}

impl Process {
    /// The core where it had the most kernel time, with its samples there: all, and in the
    /// kernel.
    fn worst_core(&self) -> (u32, u64, u64) {
        let cores = self
            .cores
            .iter()
            .map(|(cpu, (all, kernel))| (*cpu, *all, *kernel));
        cores
            .max_by_key(|(cpu, all, kernel)| (*kernel, *all, u32::MAX - cpu))
            .unwrap_or_default()
    }

    /// Cores where it had at least this many samples in the kernel, as [`Self::worst_core`].
    fn cores_above(&self, least: f64) -> Vec<(u32, u64, u64)> {
        let cores = self.cores.iter();
        let cores = cores.map(|(cpu, (all, kernel))| (*cpu, *all, *kernel));
        let mut cores: Vec<_> = cores
            .filter(|(.., kernel)| *kernel as f64 >= least)
            .collect();
        cores.sort_unstable();
        cores
    }

    fn describe(
        &self,
        (cpu, all, kernel): (u32, u64, u64),
        interval: Duration,
        per_core: f64,
    ) -> ProcessOnCore {
        let sum = |pick: fn(&(u64, u64)) -> u64| self.cores.values().map(pick).sum::<u64>();
        let n_kernel = sum(|core| core.1);
        let ratio = |n: u64| thousandths((n as f64 / per_core).min(1.0));
        let stacks = self.most_frequent();
        let hottest = stacks.first();
        let share = |stack: &StackShare| stack.samples as f64 / n_kernel.max(1) as f64;
        ProcessOnCore {
            comm: Some(self.comm.to_string()),
            cpu: Some(cpu),
            cgroup: self.cgroup.as_deref().map(str::to_owned),
            unit: self.cgroup.as_deref().and_then(unit_of),
            samples: Some(sum(|core| core.0)),
            kernel_samples: Some(n_kernel),
            interval_ns: u64::try_from(interval.as_nanos()).ok(),
            core_ratio: Some(ratio(all)),
            kernel_ratio: Some(ratio(kernel)),
            cores: self
                .cores_above(LEAST_RATIO * per_core)
                .into_iter()
                .map(|(cpu, _, kernel)| CoreShare {
                    cpu,
                    kernel_ratio: ratio(kernel),
                })
                .collect(),
            hot_stack: hottest.map_or_else(Vec::new, |stack| stack.frames.clone()),
            hot_share: hottest.map(|stack| thousandths(share(stack))),
            stacks,
            statistics: self.statistics.iter().cloned().collect(),
            ..ProcessOnCore::default()
        }
    }

    /// The kernel stacks that were seen most, as they were seen: what they mean is for the
    /// judge to say. One stack alone may be a third of a walk, or less.
    fn most_frequent(&self) -> Vec<StackShare> {
        let stacks = self.stacks.values().map(|(n, stack)| StackShare {
            samples: *n,
            frames: functions(stack),
        });
        let mut stacks: Vec<StackShare> = stacks.collect();
        stacks.sort_by(|a, b| {
            let key = |stack: &StackShare| (stack.samples, stack.frames.len());
            key(b).cmp(&key(a)).then_with(|| b.frames.cmp(&a.frames))
        });
        let mut bytes = 0;
        let fits = |stack: &StackShare| {
            bytes += stack
                .frames
                .iter()
                .map(|name| name.len() + 1)
                .sum::<usize>();
            bytes <= MAX_STACKS_BYTES
        };
        let most = stacks.into_iter().take(MAX_STACKS_TOLD);
        most.take_while(fits).collect()
    }
}

/// More digits would only be noise of the sampling.
fn thousandths(ratio: f64) -> f64 {
    (ratio * 1e3).round() / 1e3
}

fn unit_of(cgroup: &str) -> Option<String> {
    let path = text::unescape(cgroup);
    let origin = Origin::of(&path);
    origin.host_unit().map(|unit| text::escape(unit.as_bytes()))
}

/// The functions of a stack, outermost first. What is innermost is kept when it is long.
fn functions(stack: &[Arc<Place>]) -> Vec<String> {
    let mut names = Vec::new();
    let mut bytes = 0;
    for place in stack {
        let name = place.name();
        bytes += name.len() + 1;
        if bytes > MAX_STACK_BYTES {
            break;
        }
        names.push(name);
    }
    names.reverse();
    names
}

#[cfg(test)]
mod tests;
