//! A fix: what is planned, what was done, and what is left. Values only; the crate that
//! acts makes them, reports show them.

use std::time::Duration;

use crate::subject::SubjectKind;

/// What sexton can do about a trouble by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Bound the restarts of the unit.
    Bound,
    /// Stop the unit until the next boot.
    Stop,
    /// Stop, disable and mask the unit.
    Mask,
    /// Have the kernel release dying cgroups.
    Purge,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bound, Self::Stop, Self::Mask, Self::Purge];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Stop => "stop",
            Self::Mask => "mask",
            Self::Purge => "purge",
        }
    }
}

/// The acts that a rule offers for what it finds on a running node. All that acts reads them from
/// the rule: `sexton fix`, the agent's helper and its configuration, the screen that offers a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer(pub &'static [Act]);

impl Offer {
    /// A person has to act.
    pub const NOTHING: Self = Self(&[]);

    /// Whether it has this act.
    pub fn has(self, act: Act) -> bool {
        self.0.contains(&act)
    }

    /// Whether a fix stops what a finding is about, or bounds its restarts: a unit that makes the
    /// trouble by itself or by what it starts. Of a template only instances run, and a unit of a
    /// user, which is told with its manager, is that user's to stop.
    pub fn stops(self, kind: &str, name: &str) -> bool {
        let is_unit = kind == SubjectKind::Unit.name();
        is_unit && self.has(Act::Stop) && !name.contains("@.") && !name.contains('/')
    }

    /// Whether a fix frees what a finding is about: dying cgroups of one origin. What a unit that
    /// is stopped has left is freed with that unit.
    pub fn frees(self, kind: &str) -> bool {
        kind == SubjectKind::Cgroup.name() && self.has(Act::Purge) && !self.has(Act::Stop)
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// What it does, in one line.
    pub title: String,
    /// What that changes on the node, one line each, as it could be typed.
    pub changes: Vec<String>,
    /// How it is taken back; `None` when there is nothing to take back.
    pub undo: Option<String>,
    /// How many dying cgroups it will free; `None` when it frees none by itself.
    pub predicted: Option<u64>,
    /// Why it will not be carried out, and what would allow it.
    pub withheld: Option<String>,
    /// What of it will not be carried out while the rest is, why, and what would allow it.
    pub except: Option<String>,
}

/// What is planned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The step of each line, in order.
    pub steps: Vec<PlannedStep>,
    /// Dying cgroups that the plan is about.
    pub dying: u64,
    /// What else to type; sexton does not do it by itself.
    pub advice: Vec<Advice>,
    /// What stays whatever is done, and why.
    pub left: Vec<Leftover>,
}

impl Plan {
    /// Whether there is anything to carry out.
    pub fn is_empty(&self) -> bool {
        self.steps.iter().all(|step| step.withheld.is_some())
    }
}

/// Something for a person to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What it does.
    pub text: String,
    /// What to type, if that is all.
    pub command: Option<String>,
}

/// Dying cgroups that stay, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// How many.
    pub dying: u64,
    /// What holds them.
    pub why: String,
    /// What would free them.
    pub frees: String,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It was carried out.
    Done,
    /// There was nothing left to do for it.
    NotNeeded(String),
    /// It was not carried out.
    Withheld(String),
    /// It was ended before its end: the node suffered, or a signal came.
    Stopped(String),
    /// It failed.
    Failed(String),
}

impl StepOutcome {
    /// Its name in JSON and text.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotNeeded(_) => "not-needed",
            Self::Withheld(_) => "withheld",
            Self::Stopped(_) => "stopped",
            Self::Failed(_) => "failed",
        }
    }

    /// More about it.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Done => None,
            Self::NotNeeded(why) | Self::Withheld(why) | Self::Stopped(why) | Self::Failed(why) => {
                Some(why)
            }
        }
    }
}

/// What a step did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// What it does, in one line.
    pub title: String,
    /// How it ended.
    pub outcome: StepOutcome,
    /// What of it was not carried out while the rest was, and why.
    pub except: Option<String>,
    /// Dying cgroups that it was to free.
    pub predicted: Option<u64>,
    /// Dying cgroups before it; `None` where they were not counted.
    pub before: Option<u64>,
    /// Dying cgroups after it.
    pub after: Option<u64>,
    /// How long it took, with the wait for the kernel to let go.
    pub took: Duration,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FixReport {
    /// The steps, in order.
    pub steps: Vec<StepReport>,
    /// Dying cgroups before all of it.
    pub before: Option<u64>,
    /// Dying cgroups after all of it.
    pub after: Option<u64>,
    /// They still come: what makes them was not stopped.
    pub still_leaking: Option<String>,
    /// What is left, and why.
    pub left: Vec<Leftover>,
    /// Where it is written how to take it back.
    pub undo_file: Option<String>,
    /// So much is left that a reboot is worth its price.
    pub reboot_advised: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_stops_units_of_the_system_and_frees_piles() {
        let check = |offer: Offer, kind, name, expected| {
            let done = (offer.stops(kind, name), offer.frees(kind));
            assert_eq!(done, expected, "{offer:?} {kind} {name}");
        };
        let maker = Offer(&[Act::Stop, Act::Mask, Act::Purge]);
        let pile = Offer(&[Act::Purge]);
        check(maker, "unit", "a.service", (true, false));
        check(maker, "unit", "a.socket", (true, false));
        check(maker, "unit", "a@.service", (false, false));
        check(maker, "unit", "user@1000.service/a.service", (false, false));
        check(maker, "cgroup", "/a", (false, false));
        check(pile, "cgroup", "/docker/<id>", (false, true));
        check(pile, "unit", "a.service", (false, false));
        check(pile, "node", "", (false, false));
        check(Offer::NOTHING, "unit", "a.service", (false, false));
        check(Offer::NOTHING, "cgroup", "/a", (false, false));
    }
}
