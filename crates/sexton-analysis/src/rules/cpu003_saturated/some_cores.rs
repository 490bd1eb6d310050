//! Some cores that are full while the others have room: what waits may not run on those.

use std::collections::BTreeSet;

use sexton_model::fact::Fact;
use sexton_model::fact::core::{CORE_IRQ_RATIO, CORE_SOFTIRQ_RATIO, CORE_SYSTEM_RATIO};
use sexton_model::fact::pressure::CPU_TASK;
use sexton_model::fact::runq::{RUNQ_DELAY_MAX_NS, RUNQ_WAIT};
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use super::{PART, STRETCH, Seen, long_stretches};
use crate::case::Case;
use crate::evidence::cpu_load::Cores;
use crate::evidence::span;
use crate::rule::Findings;

/// Where the other cores are used more than this, tasks wait because of how busy the node is.
const ROOM: f64 = 0.5;

/// Tasks wait for this part of the time, or the cores are as full as they should be.
const SOME: f64 = 0.5;

/// Tasks that wait at any time: for each of these cores, and in all.
const WAIT_FOR_EACH: f64 = 0.25;
const WAIT_IN_ALL: f64 = 0.5;

/// In each second some task waits this long for a core that tasks share: for the turns of others,
/// which take milliseconds. What wakes on a core that one busy task has for itself gets it sooner, and
/// that task waits for less.
const TURN_NS: f64 = 2e6;

/// A core that the kernel has for this part is CPU001's.
const IN_KERNEL: f64 = 0.5;

/// Looks for such cores. What is not a trouble of others is not worth a note: the node has room.
pub(super) fn judge(case: &Case<'_>, cores: &Cores<'_>, out: &mut Findings) {
    // Nothing waited long enough for processes to be looked at.
    if case.of(&CPU_TASK).is_empty() {
        return;
    }
    let some = full(case, cores);
    if some.is_empty() {
        return;
    }
    let used = cores.together(|core| some.contains(core));
    let stretches = long_stretches(case, &used);
    if stretches.is_empty() {
        return;
    }
    let others = cores.together(|core| !some.contains(core)).mean(&stretches);
    let seen = Seen {
        some: Some((some.into_iter().collect(), others)),
        ..Seen::of(case, &used, &stretches)
    };
    let waiting = seen.waiters.mean(0.0, |_, _| true);
    let least = (WAIT_FOR_EACH * used.n_cores as f64).max(WAIT_IN_ALL);
    let is_waited_for = waiting >= least && seen.pressure(case).is_none_or(|some| some >= SOME);
    let is_own = seen.main().is_some_and(|main| main.is_own);
    if others <= ROOM && is_waited_for && !is_own && seen.severity(case) > Severity::Note {
        out.found(seen.finding(case));
    }
}

/// The cores that are full for long and that tasks share; none if these are all.
fn full<'a>(case: &Case<'_>, cores: &Cores<'a>) -> BTreeSet<&'a Subject> {
    let least = case.lasting(&STRETCH);
    let stretches = |core: &Subject| {
        let mut full = cores
            .together(|one| one == core)
            .stretches(case.limit(&PART));
        full.retain(|(from, to)| to.since(*from) >= least);
        full
    };
    let all: BTreeSet<&Subject> = cores.all().collect();
    let full: BTreeSet<&Subject> = all
        .iter()
        .copied()
        .filter(|core| {
            let full = stretches(core);
            !full.is_empty() && is_shared(case, core, &full) && !is_held(case, core, &full)
        })
        .collect();
    match full.len() < all.len() {
        true => full,
        false => BTreeSet::new(),
    }
}

/// Whether tasks take turns on a core, as far as that is known.
fn is_shared(case: &Case<'_>, core: &Subject, full: &[(Moment, Moment)]) -> bool {
    mean(case, &RUNQ_DELAY_MAX_NS, core, full).is_none_or(|ns| ns >= TURN_NS)
}

/// Whether a core is held by the kernel (CPU001) or by a real-time task (CPU006).
fn is_held(case: &Case<'_>, core: &Subject, full: &[(Moment, Moment)]) -> bool {
    let parts = [&CORE_SYSTEM_RATIO, &CORE_IRQ_RATIO, &CORE_SOFTIRQ_RATIO];
    let kernel: f64 = parts
        .iter()
        .filter_map(|fact| mean(case, fact, core, full))
        .sum();
    let mut waits = case
        .events(&RUNQ_WAIT)
        .filter(|event| event.subject == core);
    kernel >= IN_KERNEL || waits.any(|event| event.says.holder_realtime == Some(true))
}

fn mean(
    case: &Case<'_>,
    fact: &'static Fact,
    core: &Subject,
    full: &[(Moment, Moment)],
) -> Option<f64> {
    let samples: Vec<_> = case.samples(fact, core).collect();
    span::mean(&samples, full)
}

/// Names that are listed; the rest is counted.
const MAX_LISTED: usize = 8;

/// `core 3`, `cores 0, 1`.
pub(super) fn words(cores: &[&Subject]) -> String {
    let mut numbers: Vec<&str> = cores.iter().map(|core| &*core.name).collect();
    numbers.sort_by_key(|name| (name.len(), *name));
    let listed = numbers.iter().take(MAX_LISTED).copied();
    let listed = listed.collect::<Vec<&str>>().join(", ");
    match numbers.len() {
        1 => format!("core {listed}"),
        n if n > MAX_LISTED => format!("cores {listed} and {} more", n - MAX_LISTED),
        _ => format!("cores {listed}"),
    }
}
