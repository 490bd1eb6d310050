//! What a unit makes again and again is what piles up dying.

use sexton_model::fact::unit as unit_fact;
use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::words::figures;

pub(super) static FROM_LOOP: LinkRule = LinkRule {
    cause: "UNIT001",
    effect: "MCG001",
    meet,
};

pub(super) static FROM_CHURN: LinkRule = LinkRule {
    cause: "UNIT002",
    effect: "MCG001",
    meet,
};

/// Leads over containers are drawn over them; the short way is less sure, so that the chain
/// takes the long one.
const PAST_CONTAINERS: Confidence = Confidence::LIKELY;

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let by_unit = effect.touches(&cause.subject);
    let mut cgroups = effect.touched_of(SubjectKind::Cgroup);
    let by_cgroup = cgroups.find(|cgroup| cause.touches(cgroup));
    let mut evidence = Vec::new();
    if by_unit {
        let text = format!(
            "the path or the creator of the dying cgroups leads to {}",
            cause.subject.name
        );
        evidence.push(Evidence::speaks_for("memcg, cgroups", text));
    }
    if let Some(cgroup) = by_cgroup {
        let text = format!("what it makes and what is dying are both {}", cgroup.name);
        evidence.push(Evidence::speaks_for("cgroups, memcg", text));
    }
    if evidence.is_empty() {
        return by_step(case, cause);
    }
    evidence.extend(left(case, effect));
    evidence.extend(starts(case, cause));
    let sure = match (by_unit, by_cgroup.is_some()) {
        (true, _) => Confidence::CERTAIN,
        _ => Confidence::percent(85),
    };
    let is_container = effect.touched_of(SubjectKind::Image).next().is_some();
    Meeting::Joined(
        if is_container {
            sure.at_most(PAST_CONTAINERS)
        } else {
            sure
        },
        evidence,
    )
}

/// No census names the dying ones, and nothing else leads to the unit: then it is only that
/// they become more as it starts.
fn by_step(case: &Case<'_>, cause: &Finding) -> Meeting {
    let Some(nameless) = case.nameless() else {
        return Meeting::Strangers;
    };
    let starts = case.samples(&unit_fact::UNIT_STARTS, &cause.subject);
    let starts = starts.filter(|(at, _)| nameless.is_within(*at));
    let n: f64 = starts.map(|(_, n)| n).sum();
    let what = format!("{} started", cause.subject.name);
    match nameless.in_step(n as usize, &what) {
        Some(evidence) => Meeting::Joined(Confidence::POSSIBLE, vec![evidence]),
        None => Meeting::Strangers,
    }
}

/// How many of those that were removed under our eyes stayed.
fn left(case: &Case<'_>, effect: &Finding) -> Option<Evidence> {
    if !case.heard("cgroups") {
        return Some(Evidence::missing("cgroups", case.why_silent("cgroups")));
    }
    let creations = case.creations();
    let fates = effect
        .touched_of(SubjectKind::Cgroup)
        .map(|cgroup| creations.fate(&cgroup.name));
    let (removed, left) = fates.fold((0, 0), |(r, l), fate| {
        (r.max(fate.n_removed), l.max(fate.n_left))
    });
    let text = format!(
        "of {} that were removed in the window the kernel still holds {}",
        figures::count(removed),
        figures::count(left)
    );
    match (removed, left) {
        (0, _) => None,
        (_, 0) => Some(Evidence::against("cgroups: removals without release", text)),
        _ => {
            Some(Evidence::speaks_for("cgroups: removals without release", text).value(left as f64))
        }
    }
}

fn starts(case: &Case<'_>, cause: &Finding) -> Option<Evidence> {
    let n: f64 = case
        .samples(&unit_fact::UNIT_STARTS, &cause.subject)
        .map(|(_, n)| n)
        .sum();
    let text = format!("each of its {n} starts in the window made a cgroup anew");
    (n > 0.0).then(|| Evidence::speaks_for("units: starts", text).value(n))
}
