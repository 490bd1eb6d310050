//! The cgroups of containers that live for seconds are what piles up dying.

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::known;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "CTR001",
    effect: "MCG001",
    meet,
};

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let mut evidence = Vec::new();
    let by_cgroup = effect
        .touched_of(SubjectKind::Cgroup)
        .find(|cgroup| cause.touches(cgroup));
    if let Some(cgroup) = by_cgroup {
        let text = format!(
            "containers of {} were seen to be made at {}",
            cause.subject.name, cgroup.name
        );
        evidence.push(Evidence::speaks_for("cgroups, containers: ids", text));
    }
    let plain = known::plain_image(&cause.subject.name);
    let mut images = effect.touched_of(SubjectKind::Image);
    let by_image = images.find(|image| known::plain_image(&image.name) == plain);
    if let Some(image) = by_image {
        let text = format!(
            "the runtime knows some of the dying ones as containers of {}",
            image.name
        );
        evidence.push(Evidence::speaks_for("memcg, containers: ids", text));
    }
    if !evidence.is_empty() {
        return Meeting::Joined(Confidence::percent(90), evidence);
    }
    // Nothing joins them by name; where containers are the only ones of their kind, kind does.
    let is_container = case
        .origins()
        .iter()
        .any(|origin| *origin.subject == effect.subject && origin.kind == "container");
    if !is_container {
        return Meeting::Strangers;
    }
    let evidence = vec![
        Evidence::speaks_for("memcg: path", "the dying ones are cgroups of containers"),
        Evidence::missing(
            "cgroups",
            "a container of this image that was seen to be made at that path",
        ),
    ];
    Meeting::Joined(Confidence::POSSIBLE, evidence)
}
