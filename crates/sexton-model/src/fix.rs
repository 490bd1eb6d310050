//! A fix: what is planned, what was done, and what is left. Values only; the crate that
//! acts makes them, reports show them.

use std::time::Duration;

use crate::subject::SubjectKind;

/// Whether a fix stops what a finding is about, or bounds its restarts: a unit that makes the
/// trouble by itself or by what it starts. Of a template only instances run, and a unit of a
/// user, which is told with its manager, is that user's to stop.
pub fn stops(code: &str, kind: &str, name: &str) -> bool {
    let is_maker = matches!(code, "UNIT001" | "UNIT002") && kind == SubjectKind::Unit.name();
    is_maker && !name.contains("@.") && !name.contains('/')
}

/// Whether a fix frees what a finding is about: dying cgroups of one origin.
pub fn frees(code: &str, kind: &str) -> bool {
    code == "MCG001" && kind == SubjectKind::Cgroup.name()
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
        let check = |code, kind, name, expected| {
            let done = (stops(code, kind, name), frees(code, kind));
            assert_eq!(done, expected, "{code}:{name}");
        };
        check("UNIT001", "unit", "a.service", (true, false));
        check("UNIT002", "unit", "a.socket", (true, false));
        check("MCG001", "cgroup", "/docker/<id>", (false, true));
        check("UNIT001", "unit", "a@.service", (false, false));
        let of_user = "user@1000.service/a.service";
        check("UNIT001", "unit", of_user, (false, false));
        check("UNIT003", "unit", "a.service", (false, false));
        check("CTR001", "image", "a:1", (false, false));
        check("CPU002", "task", "kubelet", (false, false));
    }
}
