//! Splits every core's time by what the core did, and names the worst core.
//!
//! Source: the `cpu` lines of `/proc/stat`, one read for all cores. A node's average hides
//! one lost core among 96, so no average is made here.
//! Granularity: the kernel counts in ticks of 10 ms, so at 100 ms a ratio is good to about
//! a tenth. Every look is told of the worst core and of any core of which the kernel has
//! half. At the others looks that are alike are told as one, each second: 96 cores would
//! make 9,600 records a second otherwise. A sample covers the time since the one before.
//! What the kernel did for sexton's own threads is told apart (`core_own_ratio`), by `stat` of
//! each: the work of looking is not a trouble of the node.
//! Blind to: which other task used the time, and to time with interrupts off, which the kernel
//! books to nobody (`core_unaccounted_ratio` tells how much there was).
//! Overhead: `docs/overhead.md#cores`.

pub(crate) mod fuzzing;
mod own;
mod split;
mod stat;

use std::path::PathBuf;
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::core::CoreChanged;
use sexton_model::fact::{Fact, core as fact};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};
use own::Own;
use split::{Outcome, Split, split};
use stat::{BadLine, Mode, N_MODES, Ticks};

const NAME: &str = "cores";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "every core: user, system, interrupts, idle, steal; and the worst core",
    emits: &[
        &fact::CORE_USER_RATIO,
        &fact::CORE_NICE_RATIO,
        &fact::CORE_SYSTEM_RATIO,
        &fact::CORE_IRQ_RATIO,
        &fact::CORE_SOFTIRQ_RATIO,
        &fact::CORE_IOWAIT_RATIO,
        &fact::CORE_STEAL_RATIO,
        &fact::CORE_GUEST_RATIO,
        &fact::CORE_IDLE_RATIO,
        &fact::CORE_UNACCOUNTED_RATIO,
        &fact::CORE_OWN_RATIO,
        &fact::CORE_WORST_BUSY_RATIO,
        &fact::CORE_WORST_SYSTEM_RATIO,
        &fact::TASKS_CREATED,
        &fact::RUNNABLE_TASKS,
        &fact::CORE_ONLINE.fact,
        &fact::CORE_OFFLINE.fact,
    ],
    every: Duration::from_millis(100),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

static MODES: [(Mode, &Fact); N_MODES] = [
    (Mode::User, &fact::CORE_USER_RATIO),
    (Mode::Nice, &fact::CORE_NICE_RATIO),
    (Mode::System, &fact::CORE_SYSTEM_RATIO),
    (Mode::Irq, &fact::CORE_IRQ_RATIO),
    (Mode::Softirq, &fact::CORE_SOFTIRQ_RATIO),
    (Mode::Iowait, &fact::CORE_IOWAIT_RATIO),
    (Mode::Steal, &fact::CORE_STEAL_RATIO),
    (Mode::Guest, &fact::CORE_GUEST_RATIO),
    (Mode::Idle, &fact::CORE_IDLE_RATIO),
];

/// A core of which the kernel has this part is told at every look.
///
/// Chosen: far below the part that makes a lost core (`CPU001.part`, 0.8), so that no
/// stretch of it is blurred.
const HOT: f64 = 0.5;

/// The worst core is told at every look once the kernel has this part of it.
///
/// Chosen: two ticks of the ten of a look; one is an idle core's own housekeeping.
const NOTABLE: f64 = 0.2;

/// Looks that differ by less in every mode are alike: three ticks of ten.
const ALIKE: f64 = 0.3;

/// Less of a core than this changes no judgement: half a tick of a look's ten.
const NOTABLE_OWN: f64 = 0.05;

const SECOND_NS: u64 = 1_000_000_000;

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "time per core";
    let seen = read(host).and_then(|(path, stat)| {
        let n_cores = stat::cores(&stat).flatten().count();
        (n_cores > 0)
            .then_some(n_cores)
            .ok_or_else(|| no_cores(path))
    });
    vec![match seen {
        Ok(n_cores) => Sight::sees(WHAT, format!("{n_cores} in /proc/stat")),
        Err(error) => Sight::blind(WHAT, error.chain()).with_remedy(REMEDY),
    }]
}

const REMEDY: &str = "mount -t proc proc /proc";

fn read(host: &Host) -> Result<(PathBuf, Vec<u8>), HostError> {
    let path = host.proc("stat")?;
    let stat = host.read(&path)?;
    Ok((path, stat))
}

fn no_cores(path: PathBuf) -> HostError {
    HostError::Malformed {
        path,
        what: "it has no line of a core".into(),
    }
}

/// The sensor. All it needs it keeps, so that a poll allocates nothing but records.
struct Cores {
    path: PathBuf,
    stat: Vec<u8>,
    node: Subject,
    /// By number; `None` where there is no core now.
    cores: Vec<Option<Core>>,
    /// Whether there was a look before, so that a core can be new.
    has_looked: bool,
    own: Own,
    /// When tasks were last counted.
    counted: Option<Moment>,
}

struct Core {
    subject: Subject,
    /// The last look.
    seen: Mark,
    /// Up to here it has been told. The same as `seen` when nothing is held back.
    told: Mark,
    /// What the look under way says, and where that began.
    look: Option<(Split, Mark)>,
    /// The first look that is held back.
    held: Option<Split>,
    /// Kernel time of our own threads there: of the look under way, and of those held back.
    own: (Duration, Duration),
    /// Whether anything has been told of it.
    is_known: bool,
    /// Whether the look under way has met it.
    is_met: bool,
}

/// Where the counters of a core stood, and when.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Moment,
    ticks: Ticks,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    let (path, stat) = read(host).map_err(|error| gap(&error))?;
    Ok(Box::new(Cores {
        path,
        stat,
        node: Subject::node(),
        cores: Vec::new(),
        has_looked: false,
        own: Own::default(),
        counted: None,
    }))
}

fn gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain()).with_remedy(REMEDY)
}

impl Sensor for Cores {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        if let Err(error) = host.read_into(&self.path, &mut self.stat) {
            return out.gap(&self.node, gap(&error));
        }
        self.own.look(host);
        let stat = std::mem::take(&mut self.stat);
        self.look(&stat, out);
        self.tell_tasks(&stat, out);
        self.stat = stat;
    }
}

impl Cores {
    fn look(&mut self, stat: &[u8], out: &mut Sink) {
        let (mut n_cores, mut n_bad) = (0, 0);
        let mut worst = Worst::default();
        for line in stat::cores(stat) {
            match line {
                Ok((number, ticks)) => {
                    n_cores += 1;
                    if let Some(split) = self.meet(number, &ticks, out) {
                        worst.consider(number, &split);
                    }
                }
                Err(BadLine) => n_bad += 1,
            }
        }
        self.tell_looks(&worst, out);
        self.tell_worst(&worst, out);
        if n_bad > 0 {
            out.gap(&self.node, bad_lines(&self.path, n_bad));
        }
        if n_cores == 0 {
            out.gap(&self.node, gap(&no_cores(self.path.clone())));
        }
        self.has_looked |= n_cores > 0;
        // A core whose line is broken is not a core that went away.
        self.part_with_unmet(n_bad == 0 && n_cores > 0, out);
    }

    /// Tells once a second how many tasks were created, and how many run or could. The file has
    /// been read for the cores anyway, so this costs no look at any process.
    fn tell_tasks(&mut self, stat: &[u8], out: &mut Sink) {
        let is_due = |last: Moment| second(last) != second(out.now());
        if !self.counted.is_none_or(is_due) {
            return;
        }
        self.counted = Some(out.now());
        let counts = [
            (&b"processes "[..], &fact::TASKS_CREATED),
            (b"procs_running ", &fact::RUNNABLE_TASKS),
        ];
        for (name, fact) in counts {
            if let Some(n) = stat::count(stat, name) {
                out.sample(&self.node, fact, n as f64);
            }
        }
    }

    /// Looks at one core, and gives back the split if there is one.
    fn meet(&mut self, number: u32, ticks: &Ticks, out: &mut Sink) -> Option<Split> {
        let slot = number as usize;
        if self.cores.len() <= slot {
            self.cores.resize_with(slot + 1, || None);
        }
        let Some(core) = &mut self.cores[slot] else {
            let core = Core::new(number, ticks, out.now());
            if self.has_looked {
                out.event(out.now(), &core.subject, &fact::CORE_ONLINE, CoreChanged {});
            }
            self.cores[slot] = Some(core);
            return None;
        };
        core.is_met = true;
        core.own.1 += std::mem::replace(&mut core.own.0, self.own.on(number));
        let before = core.seen;
        let wall = out.now().since(before.at);
        match split(&mut core.seen.ticks, ticks, wall) {
            Outcome::Told(split) => {
                core.seen.at = out.now();
                let is_alike = core.held.is_none_or(|held| split.is_like(&held, ALIKE));
                if !is_alike || second(before.at) != second(out.now()) {
                    core.tell_until(before, out);
                }
                core.held.get_or_insert(split);
                core.look = Some((split, before));
                Some(split)
            }
            Outcome::BegunAnew => {
                core.seen.at = out.now();
                core.tell_until(before, out);
                (core.told, core.held, core.own) = (core.seen, None, Default::default());
                out.gap(&core.subject, begun_anew(number));
                None
            }
            Outcome::TooSoon => None,
        }
    }

    /// Tells this look at those cores where it matters.
    fn tell_looks(&mut self, worst: &Worst, out: &mut Sink) {
        let worst = worst.system.filter(|(_, ratio)| *ratio >= NOTABLE);
        let worst = worst.map(|(number, _)| number);
        for (number, core) in (0..).zip(&mut self.cores) {
            if let Some(core) = core
                && let Some((split, before)) = core.look.take()
                && (!core.is_known || worst == Some(number) || split.system_side() >= HOT)
            {
                core.tell_until(before, out);
                let own = std::mem::take(&mut core.own.0);
                core.tell(core.seen, &split, own, out);
            }
        }
    }

    fn tell_worst(&self, worst: &Worst, out: &mut Sink) {
        let facts = [
            (worst.busy, &fact::CORE_WORST_BUSY_RATIO),
            (worst.system, &fact::CORE_WORST_SYSTEM_RATIO),
        ];
        for (worst, fact) in facts {
            let Some((number, ratio)) = worst else {
                continue;
            };
            if let Some(core) = &self.cores[number as usize] {
                out.sample(&core.subject, fact, ratio);
            }
        }
    }

    /// Ends the look. Cores it did not meet went away, if it saw all there are.
    fn part_with_unmet(&mut self, saw_all: bool, out: &mut Sink) {
        for slot in &mut self.cores {
            if let Some(core) = slot
                && !std::mem::take(&mut core.is_met)
                && saw_all
            {
                out.event(
                    out.now(),
                    &core.subject,
                    &fact::CORE_OFFLINE,
                    CoreChanged {},
                );
                *slot = None;
            }
        }
    }
}

impl Core {
    fn new(number: u32, ticks: &Ticks, now: Moment) -> Self {
        let mark = Mark {
            at: now,
            ticks: *ticks,
        };
        Self {
            subject: Subject::cpu(number),
            seen: mark,
            told: mark,
            look: None,
            held: None,
            own: Default::default(),
            is_known: false,
            is_met: true,
        }
    }

    /// Tells what was held back up to a look, as one.
    fn tell_until(&mut self, until: Mark, out: &mut Sink) {
        if until.at <= self.told.at {
            return;
        }
        let wall = until.at.since(self.told.at);
        match split(&mut self.told.ticks, &until.ticks, wall) {
            Outcome::Told(split) => {
                let own = std::mem::take(&mut self.own.1);
                self.tell(until, &split, own, out);
            }
            Outcome::TooSoon => {}
            Outcome::BegunAnew => {
                (self.told, self.held) = (until, None);
                let text = "small steps backwards of a core's counters add up; a part of this second is not known";
                out.gap(&self.subject, Gap::new(NAME, Why::Lost(1), text));
            }
        }
    }

    /// Tells what became of the time until this mark.
    fn tell(&mut self, until: Mark, split: &Split, own: Duration, out: &mut Sink) {
        for (mode, fact) in MODES {
            out.sample_at(until.at, &self.subject, fact, split.part(mode));
        }
        let unaccounted = &fact::CORE_UNACCOUNTED_RATIO;
        out.sample_at(until.at, &self.subject, unaccounted, split.unaccounted);
        let wall = until.at.since(self.told.at).as_secs_f64();
        let own = (own.as_secs_f64() / wall.max(f64::MIN_POSITIVE)).min(1.0);
        if own >= NOTABLE_OWN {
            out.sample_at(until.at, &self.subject, &fact::CORE_OWN_RATIO, own);
        }
        self.told = until;
        self.held = None;
        self.is_known = true;
    }
}

fn second(at: Moment) -> u64 {
    at.as_ns() / SECOND_NS
}

/// The cores where something is greatest; the first of several alike.
#[derive(Default)]
struct Worst {
    busy: Option<(u32, f64)>,
    system: Option<(u32, f64)>,
}

impl Worst {
    fn consider(&mut self, number: u32, split: &Split) {
        let greatest = |worst: &mut Option<(u32, f64)>, ratio: f64| {
            if worst.is_none_or(|(_, known)| ratio > known) {
                *worst = Some((number, ratio));
            }
        };
        greatest(&mut self.busy, split.busy());
        greatest(&mut self.system, split.system_side());
    }
}

fn bad_lines(path: &std::path::Path, n_bad: u64) -> Gap {
    let text = format!(
        "cannot make sense of {n_bad} of the cores in {}",
        path.display()
    );
    Gap::new(NAME, Why::Malformed, text)
}

fn begun_anew(number: u32) -> Gap {
    let text = format!("a counter of core {number} went backwards; this interval is not known");
    Gap::new(NAME, Why::Lost(1), text)
}
