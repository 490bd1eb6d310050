//! The gate: whether a node may pass, by a few counts that cost next to nothing.
//!
//! Not the judge: it knows no causes. It says what is over its limit, and which rule looks
//! closer. What could not be counted is unknown, never a pass.

mod checks;
mod count;
mod policy;

use sexton_model::gap::Gap;
use sexton_model::gate::{Check, Tally, UnitSurvey};
use sexton_model::timeline::Timeline;
use sexton_signatures::Signatures;

use crate::evidence::recognized::Recognized;

pub use policy::{GatePolicy, Limit};

/// What a gate looks at.
pub struct Seen<'a> {
    /// Memory cgroups.
    pub memory: &'a Tally,
    /// Units, or why they could not be seen.
    pub units: Result<&'a UnitSurvey, &'a Gap>,
    /// What was said of containers, network devices, the kernel's log and files of units.
    pub records: &'a dyn Timeline,
    /// Container runtimes that are here and that no sensor asks.
    pub other_runtimes: &'a [&'a str],
    /// What is known of lines of the kernel's log and of units.
    pub signatures: &'a Signatures,
}

/// The limits of all checks.
pub fn limits() -> impl Iterator<Item = &'static Limit> {
    checks::CHECKS.iter().map(|check| &check.limit)
}

/// How many live memory cgroups need to be counted at most, when there are so many in all.
pub fn enough_live(total: u64, policy: &GatePolicy) -> u64 {
    checks::enough_live(total, policy)
}

/// Makes every check that the policy wants; of these only some, when they are named.
pub fn judge(seen: &Seen<'_>, policy: &GatePolicy, only: &[String]) -> Vec<Check> {
    let recognized = Recognized::new(seen.records, seen.signatures);
    let seen = &Seen {
        records: &recognized,
        ..*seen
    };
    checks::CHECKS
        .iter()
        .filter(|check| only.is_empty() || only.iter().any(|name| name == check.limit.name))
        .filter(|check| !policy.skips(&check.limit))
        .map(|check| (check.count)(seen, policy).against(&check.limit, policy))
        .collect()
}
