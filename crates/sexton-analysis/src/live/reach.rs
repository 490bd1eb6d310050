//! How far back rules look while a node is recorded.

use std::time::Duration;

use sexton_model::fact::{
    Fact, core, exit, filesystem, host, napi, nic, pressure, runq, sexton, unit,
};
use sexton_model::fact::{cgroup, memory};

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
    &unit::UNIT_LAST_LINES.fact,
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

/// Facts that come at every beat and that nothing here reads: a quarter of all records. They are
/// for the time line and for metrics, so the window does not keep them.
static UNREAD: &[&Fact] = &[
    &cgroup::CGROUP_BIRTHS_ELSEWHERE,
    &core::CORE_IDLE_RATIO,
    &core::CORE_WORST_BUSY_RATIO,
    &core::CORE_WORST_SYSTEM_RATIO,
    &exit::PROCESS_EXITS_NORMAL,
    &memory::MEMORY_MAJOR_FAULTS,
    &napi::NAPI_DELAY_MAX_NS,
    &napi::NAPI_DELAY_P50_NS,
    &napi::NAPI_DELAY_P99_NS,
    &napi::NAPI_WAIT_NS,
    &nic::NIC_BQL_INFLIGHT_BYTES,
    &nic::NIC_BQL_LIMIT_BYTES,
    &nic::NIC_SENT_PACKETS,
    &pressure::PRESSURE_CPU_FULL_AVG10_RATIO,
    &pressure::PRESSURE_IO_SOME_AVG10_RATIO,
    &pressure::PRESSURE_MEMORY_FULL_AVG10_RATIO,
    &runq::RUNQ_DELAY_MEAN_NS,
    &runq::RUNQ_DELAY_P50_NS,
    &runq::RUNQ_DELAY_P99_NS,
    &runq::RUNQ_WAITING_NS,
    &runq::RUNQ_WAITING_TASKS,
    &sexton::SEXTON_CPU_RATIO,
    &sexton::SEXTON_MEMORY_BYTES,
];

/// Whether anything may read it.
pub(super) fn is_read(fact: &Fact) -> bool {
    !UNREAD.contains(&fact)
}

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

    /// The sources of this crate, without tests.
    fn sources(folder: &std::path::Path, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.to_string_lossy().into_owned();
            let is_test = name.contains("/testing") || name.ends_with("tests.rs");
            if path.is_dir() {
                sources(&path, out);
            } else if !is_test && !name.ends_with("live/reach.rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let code = text.split("#[cfg(test)]\nmod tests {").next();
                out.push(code.unwrap_or_default().to_owned());
            }
        }
    }

    #[test]
    fn what_is_not_kept_is_read_nowhere() {
        let mut code = Vec::new();
        sources(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut code,
        );
        assert!(code.len() > 100);
        for fact in UNREAD {
            let constant = fact.name.to_uppercase();
            let reads = |text: &&String| {
                text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .any(|word| word == constant)
            };
            assert_eq!(code.iter().find(reads), None, "{constant}");
        }
    }

    #[test]
    fn a_sensor_is_kept_for_the_rule_that_looks_back_furthest() {
        assert_eq!(of_sensor("units"), LONGEST);
        assert_eq!(of_sensor("napi"), USUAL);
        assert_eq!(of_sensor("no such sensor"), USUAL);
    }
}
