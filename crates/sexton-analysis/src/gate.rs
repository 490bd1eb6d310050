//! The gate: whether a node may pass, by a few counts that cost next to nothing.
//!
//! Not the judge: it knows no causes. It says what is over its limit, and which rule looks
//! closer. What could not be counted is unknown, never a pass.

mod checks;
mod policy;

use sexton_model::gap::Gap;
use sexton_model::gate::{Check, Tally, UnitSurvey};
use sexton_model::timeline::Timeline;

pub use policy::{GatePolicy, Limit};

/// What a gate looks at.
pub struct Seen<'a> {
    /// Memory cgroups.
    pub memory: &'a Tally,
    /// Units, or why they could not be seen.
    pub units: Result<&'a UnitSurvey, &'a Gap>,
    /// What sensors of containers, network devices and the kernel's log said.
    pub records: &'a dyn Timeline,
    /// Container runtimes that are here and that no sensor asks.
    pub other_runtimes: &'a [&'a str],
    /// Units that this shape of node has no use for, or why that could not be told; `None`
    /// when nobody looked, and then there is no such check.
    pub unwanted: Option<Result<&'a [String], &'a Gap>>,
}

/// Makes one check.
type Make = fn(&Seen<'_>, &GatePolicy) -> Option<Check>;

/// All checks there are: their limit, and how each is made.
static CHECKS: &[(&Limit, Make)] = &[
    (&checks::MEMORY_CGROUPS, |seen, policy| {
        Some(checks::memory_cgroups(seen, policy))
    }),
    (&checks::PER_LIVE, |seen, policy| {
        Some(checks::memory_cgroups_per_live(seen, policy))
    }),
    (&checks::FAILED_UNITS, |seen, policy| {
        Some(checks::failed_units(seen, policy))
    }),
    (&checks::RESTARTS, |seen, policy| {
        Some(checks::restarts_per_hour(seen, policy))
    }),
    (&checks::YOUNG_CONTAINERS, |seen, policy| {
        Some(checks::young_containers(seen, policy))
    }),
    (&checks::UNWANTED_UNITS, checks::unwanted_units),
    (&checks::NIC_RESETS, |seen, policy| {
        Some(checks::nic_resets(seen, policy))
    }),
];

/// The limits of all checks.
pub fn limits() -> impl Iterator<Item = &'static Limit> {
    CHECKS.iter().map(|(limit, _)| *limit)
}

/// How many live memory cgroups need to be counted at most, when there are so many in all.
pub fn enough_live(total: u64, policy: &GatePolicy) -> u64 {
    checks::enough_live(total, policy)
}

/// Makes every check that the policy wants; of these only some, when they are named.
pub fn judge(seen: &Seen<'_>, policy: &GatePolicy, only: &[String]) -> Vec<Check> {
    CHECKS
        .iter()
        .filter(|(limit, _)| only.is_empty() || only.iter().any(|name| name == limit.name))
        .filter(|(limit, _)| !policy.skips(limit))
        .filter_map(|(_, make)| make(seen, policy))
        .collect()
}
