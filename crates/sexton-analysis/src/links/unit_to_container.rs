//! A unit that restarts or churns runs the containers that die within seconds.

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;

pub(super) static FROM_LOOP: LinkRule = LinkRule {
    cause: "UNIT001",
    effect: "CTR001",
    meet,
};

pub(super) static FROM_CHURN: LinkRule = LinkRule {
    cause: "UNIT002",
    effect: "CTR001",
    meet,
};

fn meet(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let by_image = effect
        .touched_of(SubjectKind::Image)
        .find(|image| cause.touches(image));
    let by_unit = effect.touches(&cause.subject);
    let by_cgroup = effect
        .touched_of(SubjectKind::Cgroup)
        .find(|cgroup| cause.touches(cgroup));
    let mut evidence = Vec::new();
    if let Some(image) = by_image {
        let text = format!("{} starts containers of {}", cause.subject.name, image.name);
        evidence.push(Evidence::speaks_for("containers", text));
    }
    if by_unit {
        let text = format!(
            "the image, the name or the start times of the containers lead to {}",
            cause.subject.name
        );
        evidence.push(Evidence::speaks_for("containers, units", text));
    }
    if let Some(cgroup) = by_cgroup {
        let text = format!("both have the cgroups {}", cgroup.name);
        evidence.push(Evidence::speaks_for("cgroups", text));
    }
    match (by_image.is_some(), by_unit, by_cgroup.is_some()) {
        (false, false, false) => Meeting::Strangers,
        // Containers of many images have cgroups of one pattern.
        (false, false, true) => Meeting::Joined(Confidence::POSSIBLE, evidence),
        _ => Meeting::Joined(Confidence::percent(90), evidence),
    }
}
