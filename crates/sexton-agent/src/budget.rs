//! The agent measures itself, and sheds sensors when it takes more than it may.

use std::time::Duration;

use sexton_model::moment::Moment;

use crate::settings::Budget;

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

/// What was measured of a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    /// Of one core.
    pub(crate) cpu_ratio: f64,
    pub(crate) memory_bytes: u64,
}

/// Watches what the agent uses.
#[derive(Debug)]
pub(crate) struct Meter {
    last: Option<(Moment, Duration)>,
    n_minutes: u64,
    n_over: u32,
    shed: Vec<&'static str>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            last: None,
            n_minutes: 0,
            n_over: 0,
            shed: Vec::new(),
        }
    }

    /// Whether a minute is over.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        self.last.is_none_or(|(at, _)| now.since(at) >= EVERY)
    }

    /// Takes what was used so far; gives the last minute.
    pub(crate) fn measure(
        &mut self,
        now: Moment,
        cpu_time: Duration,
        memory_bytes: u64,
    ) -> Option<Measured> {
        let last = self.last.replace((now, cpu_time));
        let (at, used) = last?;
        let elapsed = now.since(at).as_secs_f64();
        self.n_minutes += 1;
        Some(Measured {
            cpu_ratio: cpu_time.saturating_sub(used).as_secs_f64() / elapsed.max(0.001),
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
        Some((self.shed_next(at_work)?, over))
    }

    /// The next sensor to be shed at once: the kernel would kill the agent before a minute is
    /// over.
    pub(crate) fn shed_next(&mut self, at_work: &[&'static str]) -> Option<&'static str> {
        let next = SHED_ORDER
            .into_iter()
            .find(|name| at_work.contains(name) && !self.shed.contains(name))?;
        self.shed.push(next);
        Some(next)
    }

    /// What was shed so far.
    pub(crate) fn stopped(&self) -> &[&'static str] {
        &self.shed
    }
}

fn over(measured: Measured, budget: Budget) -> Option<String> {
    if measured.cpu_ratio > budget.cpu_ratio {
        return Some(format!(
            "the agent used {:.2} % of a core for {} minutes (limit {:.2} %)",
            measured.cpu_ratio * 100.0,
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
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        cpu_ratio: 0.01,
        memory_bytes: 40 << 20,
    };

    /// Minutes of these (percent of a core, MiB); what is shed at which.
    fn check(minutes: &[(u64, u64)], expected: &[(usize, &str)]) {
        let mut meter = Meter::new();
        let (mut now, mut cpu) = (Moment::from_ns(1), Duration::ZERO);
        assert!(meter.measure(now, cpu, 0).is_none());
        let mut shed = Vec::new();
        for (i, (percent, mib)) in minutes.iter().enumerate() {
            now = now.after(EVERY);
            cpu += EVERY * (*percent as u32) / 100;
            assert!(meter.is_due(now));
            let measured = meter.measure(now, cpu, mib << 20).expect("a minute");
            let at_work = ["cores", "runq", "stacks", "units"];
            shed.extend(
                meter
                    .shed(measured, BUDGET, &at_work)
                    .map(|(name, _)| (i, name)),
            );
        }
        assert_eq!(shed, expected);
    }

    #[test]
    fn nothing_is_shed_within_the_budget_nor_for_one_bad_minute() {
        check(&[(90, 10), (0, 39), (50, 10), (0, 30), (50, 10)], &[]);
    }

    #[test]
    fn sensors_go_in_their_order_and_no_others() {
        let bad = [(50, 10); 9];
        check(&bad, &[(2, "stacks"), (4, "runq")]);
    }

    #[test]
    fn before_the_kernel_kills_it_there_is_no_patience() {
        let mut meter = Meter::new();
        let at_work = ["cores", "napi", "runq"];
        let shed = [(); 3].map(|()| meter.shed_next(&at_work));
        assert_eq!(shed, [Some("runq"), Some("napi"), None]);
        assert_eq!(meter.stopped(), ["runq", "napi"]);
    }

    #[test]
    fn memory_counts_too() {
        check(&[(0, 10), (0, 90), (0, 90)], &[(2, "stacks")]);
    }
}
