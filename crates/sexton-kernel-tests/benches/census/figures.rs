//! What was measured, and the limits that it must keep.

use std::time::Duration;

/// Ratio of sexton's walk to the bare one, for one cgroup.
const WALK_LIMIT: f64 = 1.5;
/// Growth of the cost of one cgroup from 10,000 to 70,000 of them.
const GROWTH_LIMIT: f64 = 1.5;
/// Peak memory of the command at the largest census.
const PEAK_LIMIT_MIB: f64 = 64.0;

/// One walk, whoever did it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lap {
    pub(crate) visited: u64,
    /// In the kernel.
    pub(crate) walk: Duration,
    /// Taking the results out.
    pub(crate) hand_over: Duration,
    /// The longest run without a break.
    pub(crate) longest_run: Duration,
}

impl Lap {
    fn total(&self) -> Duration {
        self.walk + self.hand_over
    }
}

/// The walks that one program did at one size.
#[derive(Debug, Default)]
pub(crate) struct Laps(pub(crate) Vec<Lap>);

impl Laps {
    /// Microseconds for each cgroup, best and median.
    pub(crate) fn total(&self) -> Spread {
        self.each(Lap::total)
    }

    pub(crate) fn walk(&self) -> Spread {
        self.each(|lap| lap.walk)
    }

    pub(crate) fn hand_over(&self) -> Spread {
        self.each(|lap| lap.hand_over)
    }

    /// Microseconds of the longest run without a break.
    pub(crate) fn longest_run(&self) -> Spread {
        Spread::of(self.0.iter().map(|lap| micros(lap.longest_run)))
    }

    fn each(&self, time: impl Fn(&Lap) -> Duration) -> Spread {
        Spread::of(
            self.0
                .iter()
                .map(|lap| micros(time(lap)) / lap.visited as f64),
        )
    }
}

/// What repeated measuring gave. The machine is never quite idle: the best is the
/// one that was disturbed least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self {
            best: values.first().copied().unwrap_or(f64::NAN),
            median: values.get(values.len() / 2).copied().unwrap_or(f64::NAN),
        }
    }
}

/// All at one number of dying cgroups.
#[derive(Debug)]
pub(crate) struct AtSize {
    pub(crate) n_dying: u32,
    pub(crate) sexton: Laps,
    pub(crate) bare: Laps,
    /// Microseconds for each cgroup of a whole census.
    pub(crate) census: Spread,
}

impl AtSize {
    pub(crate) fn ratio(&self) -> f64 {
        self.sexton.total().best / self.bare.total().best
    }
}

/// What a command took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) peak_bytes: u64,
}

impl Usage {
    pub(crate) fn peak_mib(&self) -> f64 {
        self.peak_bytes as f64 / f64::from(1 << 20)
    }
}

/// sexton's command next to `find`, milliseconds of CPU time.
#[derive(Debug)]
pub(crate) struct Commands {
    pub(crate) n_live: u32,
    pub(crate) sexton_ms: Spread,
    pub(crate) find_ms: Spread,
}

impl Commands {
    pub(crate) fn ratio(&self) -> f64 {
        self.sexton_ms.best / self.find_ms.best
    }
}

/// What one dying cgroup costs, in bytes.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) n_dying: u32,
    pub(crate) slab: f64,
    pub(crate) percpu: f64,
    /// What the census says it is at least.
    pub(crate) estimate: f64,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) sizes: Vec<AtSize>,
    /// Milliseconds to load sexton's program and the bare one.
    pub(crate) load_ms: (Spread, Spread),
    /// Milliseconds to have every CPU put its waiting pages on the lists.
    pub(crate) drain_ms: Spread,
    pub(crate) commands: Commands,
    pub(crate) text: Usage,
    pub(crate) json: Usage,
    pub(crate) cost: Cost,
    pub(crate) machine: String,
    /// Memory cgroups before and after all of it.
    pub(crate) left: (u64, u64),
}

/// One limit and what was measured.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) limit: f64,
}

impl Check {
    pub(crate) fn holds(&self) -> bool {
        self.value <= self.limit
    }
}

impl Figures {
    pub(crate) fn checks(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = self.sizes.iter().map(walk_check).collect();
        if let [.., before, largest] = &self.sizes[..] {
            checks.push(Check {
                what: format!(
                    "one cgroup at {} / at {}, sexton's walk",
                    thousands(largest.n_dying),
                    thousands(before.n_dying)
                ),
                value: largest.sexton.total().best / before.sexton.total().best,
                limit: GROWTH_LIMIT,
            });
        }
        for (usage, command) in [(self.text, "zombies"), (self.json, "zombies --json")] {
            checks.push(Check {
                what: format!("peak memory of `sexton {command}`, MiB"),
                value: usage.peak_mib(),
                limit: PEAK_LIMIT_MIB,
            });
        }
        checks
    }
}

fn walk_check(at: &AtSize) -> Check {
    Check {
        what: format!("sexton's walk / bare walk, {} dying", thousands(at.n_dying)),
        value: at.ratio(),
        limit: WALK_LIMIT,
    }
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// `70000` as `70,000`; there are no millions here.
pub(crate) fn thousands(n: u32) -> String {
    if n < 1000 {
        n.to_string()
    } else {
        format!("{},{:03}", n / 1000, n % 1000)
    }
}
