//! The gate: a few counts of a node, each against its limit.

use crate::gap::Gap;

/// What became of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Passed {
    /// It is over its limit.
    No,
    /// It could not be seen.
    Unknown,
    /// It is within its limit.
    Yes,
}

impl Passed {
    /// Its name in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "fail",
            Self::Unknown => "unknown",
            Self::Yes => "pass",
        }
    }

    /// In JSON: what is not known is neither.
    pub fn as_bool(self) -> Option<bool> {
        match self {
            Self::No => Some(false),
            Self::Unknown => None,
            Self::Yes => Some(true),
        }
    }
}

/// How a check's value relates to the true count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It is the count.
    Exact,
    /// Not all could be seen: the count is this or more.
    AtLeast,
    /// Counting ended early: the count is this or less.
    AtMost,
}

impl Bound {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at-least",
            Self::AtMost => "at-most",
        }
    }

    /// What stands before the value in text.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        }
    }
}

/// One count against its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its name, which is also its key in a policy: `memory_cgroups`.
    pub name: &'static str,
    /// What it counts, in a few words.
    pub title: &'static str,
    /// The rule that looks closer.
    pub code: &'static str,
    /// What became of it.
    pub passed: Passed,
    /// What was counted.
    pub value: Option<f64>,
    /// Whether the value is the count itself or a bound of it.
    pub bound: Bound,
    /// The most that passes.
    pub limit: f64,
    /// What was seen, or why it was not, in one sentence.
    pub why: String,
    /// What it is about: the units, images or devices, worst first.
    pub subjects: Vec<String>,
    /// What to type next.
    pub next: Option<String>,
}

/// The worst of them; unknown when there is none.
pub fn worst(checks: &[Check]) -> Passed {
    let outcomes = checks.iter().map(|check| check.passed);
    outcomes.min().unwrap_or(Passed::Unknown)
}

/// Memory cgroups, counted without a walk of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Live and dying together.
    pub total: Option<u64>,
    /// Those with a directory.
    pub live: Option<Live>,
    /// What could not be counted.
    pub gaps: Vec<Gap>,
}

/// How many are live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live {
    /// So many.
    Exactly(u64),
    /// Counting was ended here; there are more.
    AtLeast(u64),
}

/// What systemd says of all units at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitSurvey {
    /// Units that are loaded.
    pub n_units: u64,
    /// Those that have failed.
    pub failed: Vec<String>,
    /// Services that systemd has restarted, and how often since they were last started
    /// otherwise.
    pub restarts: Vec<(String, u64)>,
    /// Services that wait for their next restart.
    pub waiting: Vec<String>,
    /// Services whose restarts could not be asked for in time.
    pub n_unasked: u64,
    /// Seconds since boot: restarts are not older.
    pub uptime_seconds: u64,
}
