//! Polling that starved made a driver give up; or, from before the watch, what the kernel
//! complained of did.

use std::time::Duration;

use sexton_model::finding::{Confidence, Episode, Evidence, Finding};
use sexton_model::subject::{Subject, SubjectKind};

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::nic_troubles::WATCHDOG;
use crate::evidence::span::length;
use crate::words::figures::{before, time};

pub(super) static OF_POLLING: LinkRule = LinkRule {
    cause: "NET001",
    effect: "NIC001",
    meet: of_polling,
};

pub(super) static OF_COMPLAINT: LinkRule = LinkRule {
    cause: "KRN001",
    effect: "NIC001",
    meet: of_complaint,
};

/// Timers of drivers run once a second, some twice as slowly; lines come a moment later.
const SLACK: Duration = Duration::from_secs(5);

/// Whether the reset came while polling waited, or within the driver's patience after.
fn in_order(wait: &Episode, reset: &Episode) -> bool {
    wait.from <= reset.to && reset.to <= wait.to.after(WATCHDOG + SLACK)
}

/// What both touch: a queue, the device, a core that the driver names.
fn common<'a>(cause: &'a Finding, effect: &Finding) -> Option<&'a Subject> {
    [SubjectKind::Queue, SubjectKind::Device, SubjectKind::Cpu]
        .into_iter()
        .find_map(|kind| {
            cause
                .touched_of(kind)
                .find(|subject| effect.touches(subject))
        })
}

fn of_polling(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let met = effect.episodes.iter().flat_map(|reset| {
        let waits = cause
            .episodes
            .iter()
            .filter(move |wait| in_order(wait, reset));
        waits.map(move |wait| (wait, reset))
    });
    let met = met.max_by_key(|(wait, reset)| (length(wait), reset.to));
    let common = common(cause, effect);
    let said = driver_says_starved(case, effect);
    match (met, common) {
        (Some((wait, reset)), place) => {
            let text = format!(
                "NAPI polling had been delayed {} when the device reset, {} after the delay began",
                time(length(wait)),
                time(reset.to.since(wait.from))
            );
            let mut evidence = vec![Evidence::speaks_for("napi, klog", text).at(reset.to)];
            evidence.push(of_place(place));
            evidence.extend(said);
            let sure = match place {
                Some(_) => Confidence::CERTAIN,
                None if evidence.len() > 2 => Confidence::LIKELY,
                None => Confidence::POSSIBLE,
            };
            Meeting::Joined(sure, evidence)
        }
        (None, Some(place)) => of_earlier(case, effect, place, said),
        (None, None) => Meeting::Strangers,
    }
}

/// The device gave up at another time. From before the watch that says little either way.
fn of_earlier(
    case: &Case<'_>,
    effect: &Finding,
    place: &Subject,
    said: Option<Evidence>,
) -> Meeting {
    let began = case.window().map(|window| *window.start());
    let last = effect.episodes.iter().map(|episode| episode.to).max();
    let (Some(began), Some(last)) = (began, last) else {
        return Meeting::Strangers;
    };
    let text = format!("{place} reset {}", before(case.now(), last));
    if last >= began {
        let text = format!("{text}, and NAPI polling was not delayed then");
        return Meeting::Apart(vec![Evidence::against("napi, klog", text)]);
    }
    let mut evidence = vec![
        of_place(Some(place)),
        Evidence::missing(
            "napi",
            format!("{text}, before its NAPI polling was watched"),
        ),
    ];
    let sure = if said.is_some() {
        Confidence::LIKELY
    } else {
        Confidence::POSSIBLE
    };
    evidence.extend(said);
    Meeting::Joined(sure, evidence)
}

fn of_place(place: Option<&Subject>) -> Evidence {
    match place {
        Some(place) => Evidence::speaks_for("napi, nics, klog", format!("both are about {place}")),
        None => Evidence::missing("nics", "which device that core polls"),
    }
}

/// Some drivers say themselves that polling was due and did not run.
fn driver_says_starved(case: &Case<'_>, effect: &Finding) -> Option<Evidence> {
    let troubles = case.nic_troubles();
    let trouble = troubles.get(&effect.subject)?;
    let line = trouble
        .lines
        .iter()
        .rev()
        .find(|line| line.class() == "napi_starved");
    let counter = trouble
        .growths
        .iter()
        .any(|growth| growth.fact.name == "nic_resets_starved");
    match line {
        Some(line) => Some(line.evidence()),
        None if counter => {
            let text = "the driver counts the reset as caused by missed polling";
            Some(Evidence::speaks_for("nics: ethtool", text))
        }
        None => None,
    }
}

fn of_complaint(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let pairs = effect.episodes.iter().flat_map(|reset| {
        let complaints = cause
            .episodes
            .iter()
            .filter(move |one| in_order(one, reset));
        complaints.map(move |one| (one, reset))
    });
    let met: Vec<_> = pairs.collect();
    let Some((complaint, reset)) = met.last() else {
        return Meeting::Strangers;
    };
    let text = format!(
        "the device reset {} after the core stopped scheduling",
        time(reset.to.since(complaint.from))
    );
    let mut evidence = vec![Evidence::speaks_for("klog", text).at(reset.to)];
    let core = cause
        .touched_of(SubjectKind::Cpu)
        .find(|core| effect.touches(core));
    evidence.push(of_place(core));
    let has_core = cause.touched_of(SubjectKind::Cpu).next().is_some();
    match core {
        Some(_) => Meeting::Joined(Confidence::CERTAIN, evidence),
        None if has_core => Meeting::Joined(Confidence::POSSIBLE, evidence),
        // A hung task or a work item without a core explains no reset.
        None => Meeting::Strangers,
    }
}
