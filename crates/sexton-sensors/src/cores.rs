//! Splits every core's time by what the core did, and names the worst core.
//!
//! Source: the `cpu` lines of `/proc/stat`, one read for all cores. A node's average hides
//! one lost core among 96, so no average is made here.
//! Granularity: the kernel counts in ticks of 10 ms, so at 100 ms a ratio is good to about
//! a tenth; the mean of ten of them is as good as that of a second.
//! Blind to: which task used the time, and to time with interrupts off, which the kernel
//! books to nobody (`core_unaccounted_ratio` tells how much there was).
//! Overhead: `docs/overhead.md#cores`.

mod split;
mod stat;

use std::path::PathBuf;
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::fact::{Fact, core as fact};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};
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
        &fact::CORE_WORST_BUSY_RATIO,
        &fact::CORE_WORST_SYSTEM_RATIO,
        &fact::CORE_ONLINE,
        &fact::CORE_OFFLINE,
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
}

struct Core {
    subject: Subject,
    /// Where the interval that is running began, and when.
    begin: Ticks,
    since: Moment,
    /// Whether the look under way has met it.
    is_met: bool,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    let (path, stat) = read(host).map_err(|error| gap(&error))?;
    Ok(Box::new(Cores {
        path,
        stat,
        node: Subject::node(),
        cores: Vec::new(),
        has_looked: false,
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
        let stat = std::mem::take(&mut self.stat);
        self.look(&stat, out);
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
                    if let Some(split) = self.tell(number, &ticks, out) {
                        worst.consider(number, &split);
                    }
                }
                Err(BadLine) => n_bad += 1,
            }
        }
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

    /// Tells what one core did, and gives back the split if there is one.
    fn tell(&mut self, number: u32, ticks: &Ticks, out: &mut Sink) -> Option<Split> {
        let slot = number as usize;
        if self.cores.len() <= slot {
            self.cores.resize_with(slot + 1, || None);
        }
        let Some(core) = &mut self.cores[slot] else {
            let core = Core::new(number, ticks, out.now());
            if self.has_looked {
                out.event(out.now(), &core.subject, &fact::CORE_ONLINE, Vec::new());
            }
            self.cores[slot] = Some(core);
            return None;
        };
        core.is_met = true;
        match split(&mut core.begin, ticks, out.now().since(core.since)) {
            Outcome::Told(split) => {
                core.since = out.now();
                for (mode, fact) in MODES {
                    out.sample(&core.subject, fact, split.part(mode));
                }
                out.sample(
                    &core.subject,
                    &fact::CORE_UNACCOUNTED_RATIO,
                    split.unaccounted,
                );
                Some(split)
            }
            Outcome::BegunAnew => {
                core.since = out.now();
                out.gap(&core.subject, begun_anew(number));
                None
            }
            Outcome::TooSoon => None,
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
                out.event(out.now(), &core.subject, &fact::CORE_OFFLINE, Vec::new());
                *slot = None;
            }
        }
    }
}

impl Core {
    fn new(number: u32, ticks: &Ticks, now: Moment) -> Self {
        Self {
            subject: Subject::cpu(number),
            begin: *ticks,
            since: now,
            is_met: true,
        }
    }
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
