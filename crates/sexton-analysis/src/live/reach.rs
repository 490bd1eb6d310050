//! How far back rules look while a node is recorded.

use std::time::Duration;

use sexton_model::fact::{Fact, cgroup, filesystem, host, nic, sexton, unit};

use crate::rule::Rule;
use crate::rules::RULES;

/// What a rule needs unless it is named below.
///
/// Chosen: a finding is resolved this long after its last sign. Shorter, and what comes every
/// few minutes would open and resolve all day; longer, and a node looks ill that is not.
pub const USUAL: Duration = Duration::from_secs(600);

/// The longest of all: the time of the watch that rules see.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// Rules that look for what is slow.
const SLOW: [(&str, Duration); 4] = [
    // One restart an hour is a loop (`UNIT001.least_per_hour`).
    ("UNIT001", LONGEST),
    ("UNIT002", LONGEST),
    // Growth an hour, from as many censuses as there are.
    ("MCG001", LONGEST),
    ("CTR001", LONGEST),
];

/// Facts that are recorded when they change, and hold until then: the last word on each
/// subject stays, however old it is.
static STATES: &[&Fact] = &[
    &unit::UNIT_SEEN.fact,
    &unit::UNIT_CHANGED.fact,
    &unit::UNIT_FILE.fact,
    &unit::UNIT_SHAPE.fact,
    &unit::UNIT_CONTEXT.fact,
    &unit::UNIT_FAILED.fact,
    &unit::UNIT_STARTED.fact,
    &host::HOST_DESCRIPTION.fact,
    &host::HOST_CPUS,
    &host::HOST_NUMA_NODES,
    &host::HOST_MEMORY_BYTES,
    &nic::NIC_IDENTITY.fact,
    &nic::NIC_INTERRUPT.fact,
    &nic::NIC_QUEUE_CPUS.fact,
    &nic::NIC_LINK_UP,
    &nic::NIC_NAPI_THREADED,
    &filesystem::FS_SEEN.fact,
    &sexton::SEXTON_STEP_DOWN.fact,
    &sexton::SEXTON_SENSORS.fact,
    &cgroup::CGROUP_UNRELEASED,
];

/// How far back this rule looks.
pub fn of_rule(rule: &Rule) -> Duration {
    let slow = SLOW.iter().find(|(code, _)| *code == rule.code);
    slow.map_or(USUAL, |(_, reach)| *reach)
}

/// How long records of this sensor are kept: as long as any rule that reads it looks back.
pub fn of_sensor(sensor: &str) -> Duration {
    let reads = |rule: &&&Rule| rule.needs.contains(&sensor) || rule.uses.contains(&sensor);
    let reaches = RULES.iter().filter(reads).map(|rule| of_rule(rule));
    reaches.max().unwrap_or(USUAL)
}

/// Facts that hold until they change.
pub fn states() -> Vec<&'static Fact> {
    STATES.to_vec()
}

/// Whether the last word on a subject holds until the next one.
pub(super) fn is_state(fact: &Fact) -> bool {
    STATES.contains(&fact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn slow_rules_are_rules_and_none_looks_further_than_the_watch() {
        for (code, reach) in SLOW {
            assert!(rules::by_code(code).is_some(), "{code}");
            assert!((USUAL..=LONGEST).contains(&reach), "{code}");
        }
    }

    #[test]
    fn a_sensor_is_kept_for_the_rule_that_looks_back_furthest() {
        assert_eq!(of_sensor("units"), LONGEST);
        assert_eq!(of_sensor("napi"), USUAL);
        assert_eq!(of_sensor("no such sensor"), USUAL);
    }
}
