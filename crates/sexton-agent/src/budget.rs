//! The agent measures itself, sheds sensors when it takes more than it may, and brings them back
//! when there is room again.

mod threads;

use std::time::Duration;

use sexton_host::own::ThreadUse;
use sexton_model::moment::Moment;

use crate::settings::Budget;
use threads::Threads;

/// Sensors in the order in which they are stopped: the costly ones that only explain first.
/// What is not named here (censuses, cgroups, units, the kernel's log, cores, NICs) stays: a
/// verdict without it would be worth little.
pub const SHED_ORDER: [&str; 8] = [
    "stacks",
    "runq",
    "napi",
    "journal",
    "processes",
    "limits",
    "contention",
    "pressure",
];

/// How often the agent measures itself.
pub(crate) const EVERY: Duration = Duration::from_secs(60);

/// Minutes in a row over the budget before a sensor is shed. The first minute has the cost of
/// getting ready and does not count.
const PATIENCE: u32 = 2;

/// Minutes in a row with room for a sensor before it comes back; twice as many each time that it
/// was too early.
const QUIET: u32 = 10;
const LONGEST_QUIET: u32 = 160;

/// A sensor that came back and is shed again within these minutes came back too early.
const TOO_EARLY: u64 = 60;

/// Of the memory budget. A sensor comes back only below that: what it takes is not known.
const MEMORY_ROOM: f64 = 0.9;

/// Between two sensors that are shed because the kernel would kill the agent: what a sensor held
/// is given back within a poll or two of its end, and the next step of the judge.
const EFFECT: Duration = Duration::from_secs(30);

/// What was measured of a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    /// All threads, of one core.
    pub(crate) cpu_ratio: f64,
    /// Sensors, judge and ring: what is held against the budget.
    pub(crate) counted_ratio: f64,
    pub(crate) memory_bytes: u64,
}

/// A sensor that was stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shed {
    name: &'static str,
    at: Moment,
    /// Of one core, in the minute before.
    cost: f64,
}

/// A sensor that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Back {
    pub(crate) name: &'static str,
    /// Since when it was stopped.
    pub(crate) since: Moment,
}

/// Watches what the agent uses.
#[derive(Debug)]
pub(crate) struct Meter {
    last: Option<(Moment, Duration)>,
    threads: Threads,
    n_minutes: u64,
    n_over: u32,
    n_quiet: u32,
    /// Quiet minutes that are waited for, as what came back too early taught.
    quiet: u32,
    /// When a sensor last came back, in minutes.
    came_back: Option<u64>,
    shed: Vec<Shed>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            last: None,
            threads: Threads::default(),
            n_minutes: 0,
            n_over: 0,
            n_quiet: 0,
            quiet: QUIET,
            came_back: None,
            shed: Vec::new(),
        }
    }

    /// Whether a minute is over.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        self.last.is_none_or(|(at, _)| now.since(at) >= EVERY)
    }

    /// Takes what was used so far, by all threads and by each; gives the last minute.
    pub(crate) fn measure(
        &mut self,
        now: Moment,
        cpu_time: Duration,
        threads: &[ThreadUse],
        memory_bytes: u64,
    ) -> Option<Measured> {
        let elapsed = self.last.map(|(at, _)| now.since(at));
        let counted = self.threads.take(threads, elapsed.unwrap_or(EVERY));
        let (_, used) = self.last.replace((now, cpu_time))?;
        self.n_minutes += 1;
        let elapsed = elapsed.unwrap_or(EVERY).as_secs_f64().max(0.001);
        let cpu_ratio = cpu_time.saturating_sub(used).as_secs_f64() / elapsed;
        Some(Measured {
            cpu_ratio,
            counted_ratio: counted.unwrap_or(cpu_ratio),
            memory_bytes,
        })
    }

    /// The next sensor to be shed, if the agent was over its budget for too long: its name and
    /// what it was over.
    pub(crate) fn shed(
        &mut self,
        measured: Measured,
        budget: Budget,
        at_work: &[&'static str],
        now: Moment,
    ) -> Option<(&'static str, String)> {
        let over = over(measured, budget).filter(|_| self.n_minutes > 1);
        let Some(over) = over else {
            self.n_over = 0;
            return None;
        };
        self.n_over += 1;
        if self.n_over < PATIENCE {
            return None;
        }
        self.n_over = 0;
        Some((self.shed_next(at_work, now)?, over))
    }

    /// The next sensor to be shed before the kernel kills the agent, without patience but for the
    /// effect of the one before.
    pub(crate) fn shed_now(
        &mut self,
        at_work: &[&'static str],
        now: Moment,
    ) -> Option<&'static str> {
        let is_too_soon = |last: &Shed| now.since(last.at) < EFFECT;
        match self.shed.last().is_some_and(is_too_soon) {
            true => None,
            false => self.shed_next(at_work, now),
        }
    }

    fn shed_next(&mut self, at_work: &[&'static str], now: Moment) -> Option<&'static str> {
        let name = SHED_ORDER
            .into_iter()
            .find(|name| at_work.contains(name) && !self.is_shed(name))?;
        let cost = self.threads.ratio_of(name);
        self.shed.push(Shed {
            name,
            at: now,
            cost,
        });
        let is_too_early = |came_back: u64| self.n_minutes - came_back < TOO_EARLY;
        self.quiet = match self.came_back.is_some_and(is_too_early) {
            true => (self.quiet * 2).min(LONGEST_QUIET),
            false => QUIET,
        };
        self.n_quiet = 0;
        Some(name)
    }

    /// The sensor that was shed last, once there was room for it for long enough.
    pub(crate) fn bring_back(
        &mut self,
        measured: Measured,
        budget: Budget,
        is_near_limit: bool,
    ) -> Option<Back> {
        let last = *self.shed.last()?;
        let memory_room = budget.memory_bytes as f64 * MEMORY_ROOM;
        let has_room = measured.counted_ratio + last.cost <= budget.cpu_ratio
            && measured.memory_bytes as f64 <= memory_room
            && !is_near_limit;
        self.n_quiet = if has_room { self.n_quiet + 1 } else { 0 };
        if self.n_quiet < self.quiet {
            return None;
        }
        self.n_quiet = 0;
        self.came_back = Some(self.n_minutes);
        self.shed.pop();
        Some(Back {
            name: last.name,
            since: last.at,
        })
    }

    /// One that could not come back, because its thread has not ended yet.
    pub(crate) fn still_shed(&mut self, back: Back) {
        self.shed.push(Shed {
            name: back.name,
            at: back.since,
            cost: 0.0,
        });
    }

    /// Whether this sensor is stopped.
    pub(crate) fn is_shed(&self, name: &str) -> bool {
        self.shed.iter().any(|shed| shed.name == name)
    }
}

fn over(measured: Measured, budget: Budget) -> Option<String> {
    if measured.counted_ratio > budget.cpu_ratio {
        return Some(format!(
            "sensors, judge and ring used {:.2} % of a core for {} minutes (limit {:.2} %)",
            measured.counted_ratio * 100.0,
            PATIENCE,
            budget.cpu_ratio * 100.0
        ));
    }
    (measured.memory_bytes > budget.memory_bytes).then(|| {
        format!(
            "the agent used {} MiB of memory for {} minutes (limit {} MiB)",
            measured.memory_bytes >> 20,
            PATIENCE,
            budget.memory_bytes >> 20
        )
    })
}

#[cfg(test)]
mod tests;
