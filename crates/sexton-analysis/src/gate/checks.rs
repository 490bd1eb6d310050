//! The checks: one limit and one function that counts, each.

mod containers;
mod cpu;
mod memory;
mod nics;
mod unit_files;
mod units;
mod vital;

use super::Seen;
use super::count::Count;
use super::policy::{GatePolicy, Limit};

pub(super) use memory::enough_live;

/// A limit, and how what it limits is counted.
pub(super) struct Counting {
    pub(super) limit: Limit,
    pub(super) count: fn(&Seen<'_>, &GatePolicy) -> Count,
}

/// All checks there are.
pub(super) static CHECKS: &[&Counting] = &[
    &memory::MEMORY_CGROUPS,
    &memory::PER_LIVE,
    &units::FAILED_UNITS,
    &units::RESTARTS,
    &containers::YOUNG_CONTAINERS,
    &unit_files::UNWANTED_UNITS,
    &nics::NIC_RESETS,
    &cpu::CPU_SATURATED,
    &vital::MEMORY_PRESSURE,
    &vital::IO_PRESSURE,
    &vital::OOM_KILLS,
    &vital::BAD_FILESYSTEMS,
    &vital::DEFUNCT,
    &vital::UNINTERRUPTIBLE,
    &vital::LIMIT_USED,
];

/// Names shown in a sentence.
const MAX_NAMES: usize = 3;

/// Some names, and how many more.
fn names(all: &[String]) -> String {
    let shown = all.iter().take(MAX_NAMES).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    match all.len().saturating_sub(MAX_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Why a sensor said nothing of this.
fn silence(seen: &Seen<'_>, sensor: &str) -> String {
    let mut gaps = seen.records.gaps();
    let said = gaps.find(|(_, _, gap)| gap.sensor == sensor);
    said.map_or_else(
        || format!("the sensor {sensor} did not answer in time"),
        |(_, _, gap)| gap.text.clone(),
    )
}

#[cfg(test)]
mod tests;
