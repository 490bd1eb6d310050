//! What of a lost core sexton itself had, by samples of stacks: for recordings that do not
//! tell it by core and moment (`core_own_ratio`).

use std::time::Duration;

use sexton_model::fact::stack::{PROCESS_ON_CORE, ProcessOnCore};
use sexton_model::finding::Evidence;
use sexton_model::record::Event;
use sexton_model::subject::Subject;

use super::Stretch;
use crate::case::Case;
use crate::words::figures::percent;

/// Less than this of the core is not worth a word.
pub(super) const LEAST: f64 = 0.05;

/// The part of these stretches in which sexton may have had the core. Samples are summed up
/// over intervals that do not begin and end with a stretch, so this is what it had at most.
pub(super) fn part(case: &Case<'_>, core: &Subject, long: &[&Stretch]) -> f64 {
    if case.own_work().is_known() {
        // It was left out already.
        return 0.0;
    }
    let own = case.events(&PROCESS_ON_CORE).filter(|event| {
        let cpu = event.says.cpu.map(Subject::cpu);
        event.says.own == Some(true) && cpu.as_ref() == Some(core)
    });
    let had: f64 = own.map(|event| had(event, long)).sum();
    let all: f64 = long.iter().map(|one| one.length().as_secs_f64()).sum();
    if all > 0.0 { (had / all).min(1.0) } else { 0.0 }
}

/// Seconds of these stretches that a process may have had, by what is told of an interval.
fn had(event: Event<'_, ProcessOnCore>, long: &[&Stretch]) -> f64 {
    let (Some(ratio), Some(interval_ns)) = (event.says.kernel_ratio, event.says.interval_ns) else {
        return 0.0;
    };
    let interval = Duration::from_nanos(interval_ns);
    let overlap = |stretch: &&&Stretch| {
        // Moments before an interval or after it are none of it.
        let before = event.at.since(stretch.from).min(interval);
        let after = event.at.since(stretch.to).min(interval);
        before.saturating_sub(after).as_secs_f64()
    };
    let overlap: f64 = long.iter().map(|stretch| overlap(&stretch)).sum();
    overlap.min(ratio * interval.as_secs_f64())
}

/// What it had, if that is worth a word.
pub(super) fn evidence(part: f64) -> Option<Evidence> {
    let text = format!("up to {} of it was sexton's own work", percent(part));
    (part >= LEAST).then(|| Evidence::against("stacks", text).value(part))
}
