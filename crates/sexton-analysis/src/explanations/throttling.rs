//! A CPU quota makes tasks wait although cores are free.

use sexton_model::diagnosis::Explanation;
use sexton_model::fact::pressure::{CPU_QUOTA_CGROUPS, CPU_THROTTLED_RATIO};
use sexton_model::finding::{Evidence, Finding};
use sexton_model::subject::Subject;

use super::{any_of, not_seen, plays_a_part, ruled_out, told};
use crate::case::Case;
use crate::words::figures::{percent, plural};

const NAME: &str = "cpu throttling by quota";

/// A cgroup that used its quota up in fewer periods is not held up by it.
///
/// Chosen: a quarter, where the alert CPUThrottlingHigh of kubernetes-mixin begins.
const MUCH: f64 = 0.25;

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(findings, &["CPU001", "CPU002", "NET001", "JOB001"]) {
        return None;
    }
    let Some(n) = case.latest(&CPU_QUOTA_CGROUPS, &Subject::node()) else {
        // Older recordings have it from the second.
        let sensors = ["contention", "pressure"];
        return match sensors.into_iter().find(|sensor| case.heard(sensor)) {
            Some(sensor) => {
                let text = "cpu.stat of no cgroup could be read";
                told(
                    NAME,
                    sexton_model::diagnosis::Outcome::NotSeen,
                    Evidence::missing(sensor, text),
                )
            }
            None => not_seen(case, NAME, "contention"),
        };
    };
    if n == 0.0 {
        let text = "no cgroup that was looked at has a CPU quota";
        return ruled_out(NAME, Evidence::against("pressure: cpu.stat", text));
    }
    let records = case.of(&CPU_THROTTLED_RATIO).iter();
    let worst = records
        .filter_map(|record| Some((record.value()?, &record.subject)))
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
    match worst {
        Some((ratio, cgroup)) if ratio >= MUCH => {
            let text = format!(
                "{cgroup} used its quota up in {} of the periods; that holds up its own tasks, \
                 and explains no time in the kernel",
                percent(ratio)
            );
            plays_a_part(
                NAME,
                Evidence::speaks_for("pressure: cpu.stat", text).value(ratio),
            )
        }
        _ => {
            let ratio = worst.map_or(0.0, |(ratio, _)| ratio);
            let text = format!(
                "of {} with a quota none used it up in more than {} of the periods",
                plural(n as u64, "cgroup"),
                percent(ratio)
            );
            ruled_out(
                NAME,
                Evidence::against("pressure: cpu.stat", text).value(ratio),
            )
        }
    }
}
