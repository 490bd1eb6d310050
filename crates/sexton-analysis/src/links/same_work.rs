//! The work that makes the trouble is the work that has the core: the same process, or the same
//! unit, container or cgroup.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding, Severity};
use sexton_model::subject::{Subject, SubjectKind};

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::span::overlap;

pub(super) static STORM_SATURATES: LinkRule = LinkRule {
    cause: "TASK003",
    effect: "CPU003",
    meet: saturates,
};

pub(super) static STORM_HAS_CORE: LinkRule = LinkRule {
    cause: "TASK003",
    effect: "CPU001",
    meet: has_core,
};

pub(super) static CHURN_HAS_CORE: LinkRule = LinkRule {
    cause: "UNIT002",
    effect: "CPU001",
    meet: has_core,
};

pub(super) static REALTIME_SATURATES: LinkRule = LinkRule {
    cause: "CPU006",
    effect: "CPU003",
    meet: holds,
};

pub(super) static HOG_HAS_CORE: LinkRule = LinkRule {
    cause: "CPU003",
    effect: "CPU001",
    meet: has_core,
};

pub(super) static HOG_STARVES_POLLING: LinkRule = LinkRule {
    cause: "CPU003",
    effect: "NET001",
    meet: starves,
};

/// Exits and stacks are summed up over seconds.
const SLACK: Duration = Duration::from_secs(5);

/// The storm's unit or program is the one that has all cores.
fn saturates(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    if cause.subject != effect.subject || !at_one_time(cause, effect) {
        return Meeting::Strangers;
    }
    let text = format!(
        "{} starts the processes and has the cores",
        cause.subject.name
    );
    let evidence = Evidence::speaks_for("exits, stacks", text);
    Meeting::Joined(Confidence::CERTAIN, vec![evidence])
}

/// The real-time task is of the one that has most of all cores.
fn holds(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    if cause.subject != effect.subject || !at_one_time(cause, effect) {
        return Meeting::Strangers;
    }
    let text = format!(
        "{} has the cores with real-time priority",
        cause.subject.name
    );
    let evidence = Evidence::speaks_for("runq, stacks", text);
    Meeting::Joined(Confidence::CERTAIN, vec![evidence])
}

/// What had most of the core in the kernel, which the rule lists first, is the cause's own.
fn has_core(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let processes = || effect.touched_of(SubjectKind::Process);
    let Some(first) = processes().next().filter(|_| !are_apart(cause, effect)) else {
        return Meeting::Strangers;
    };
    let is_own_process = cause.touches(first) || is_named_by(cause, first);
    let mut owners = effect.touched.iter().filter(|one| is_owner(one));
    let owner = owners.find(|owner| cause.subject == **owner);
    match (is_own_process, owner) {
        (true, _) => {
            let text = format!(
                "process {} had most of core {} in the kernel",
                first.name, effect.subject.name
            );
            let evidence = Evidence::speaks_for("stacks, cores", text);
            Meeting::Joined(Confidence::CERTAIN, vec![evidence])
        }
        (false, Some(owner)) => {
            let text = format!(
                "what had most of core {} in the kernel belongs to {}",
                effect.subject.name, owner.name
            );
            let evidence = Evidence::speaks_for("stacks, cores", text);
            Meeting::Joined(Confidence::LIKELY, vec![evidence])
        }
        (false, None) => Meeting::Strangers,
    }
}

/// Polling waited while all cores were full, and no one task had its core.
fn starves(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let is_held = effect.touched_of(SubjectKind::Process).next().is_some();
    if is_held || cause.severity == Severity::Note || !at_one_time(cause, effect) {
        return Meeting::Strangers;
    }
    let text = format!(
        "polling waited for core {} while all cores were full, and no one task had that core",
        effect.subject.name
    );
    let evidence = Evidence::speaks_for("napi, cores", text);
    Meeting::Joined(Confidence::LIKELY, vec![evidence])
}

fn is_owner(subject: &Subject) -> bool {
    matches!(
        subject.kind,
        SubjectKind::Unit | SubjectKind::Container | SubjectKind::Cgroup | SubjectKind::Task
    )
}

/// A program that no unit stands for is named with its number: `leaker.sh[4711]`.
fn is_named_by(cause: &Finding, process: &Subject) -> bool {
    let name = cause.subject.name.strip_suffix(']');
    let pid = name.and_then(|name| name.rsplit_once('['));
    cause.subject.kind == SubjectKind::Task && pid.is_some_and(|(_, pid)| *pid == *process.name)
}

/// Whether they were at different times, where both say when they were.
fn are_apart(cause: &Finding, effect: &Finding) -> bool {
    let is_known = !cause.episodes.is_empty() && !effect.episodes.is_empty();
    is_known && !at_one_time(cause, effect)
}

fn at_one_time(cause: &Finding, effect: &Finding) -> bool {
    let mut pairs = cause
        .episodes
        .iter()
        .flat_map(|one| effect.episodes.iter().map(move |other| (one, other)));
    pairs.any(|(one, other)| overlap(one, other, SLACK))
}
