//! The cgroups of containers that live for seconds are what piles up dying.

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::origin::Origin;
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::known;
use crate::evidence::nameless::Nameless;

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
            "containers of {} were created at {}",
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
    if let Some(nameless) = case.nameless() {
        return meet_nameless(case, nameless, cause, effect);
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
        Evidence::speaks_for("memcg: path", "the dying ones are container cgroups"),
        Evidence::missing("cgroups", "a container of this image created at that path"),
    ];
    Meeting::Joined(Confidence::POSSIBLE, evidence)
}

/// No census names the dying ones: they lie where containers are made, or become more as
/// containers of the image end.
fn meet_nameless(
    case: &Case<'_>,
    nameless: &Nameless<'_>,
    cause: &Finding,
    effect: &Finding,
) -> Meeting {
    let runs = case.container_runs().get(&*cause.subject.name);
    let runs = runs.map_or(&[][..], Vec::as_slice);
    let ended = runs.iter().filter_map(|run| run.ended);
    let n_ended = ended.filter(|at| nameless.is_within(*at)).count();
    let what = format!("containers of {} exited", cause.subject.name);
    let in_step = nameless.in_step(n_ended, &what);
    let is_place = effect.subject.kind == SubjectKind::Cgroup
        && runs
            .iter()
            .any(|run| is_made_below(&effect.subject.name, run.id));
    let confidence = match (&in_step, is_place) {
        (Some(_), true) => Confidence::percent(85),
        (Some(_), false) => Confidence::LIKELY,
        (None, true) => Confidence::POSSIBLE,
        (None, false) => return Meeting::Strangers,
    };
    let mut evidence: Vec<Evidence> = in_step.into_iter().collect();
    if is_place {
        let text = format!(
            "container runtimes create cgroups below {}",
            effect.subject.name
        );
        evidence.push(Evidence::speaks_for("memcg: path", text));
    }
    evidence.push(Evidence::missing(
        "memcg: census",
        "the paths of the dying ones: this census method does not show them",
    ));
    Meeting::Joined(confidence, evidence)
}

/// Whether a container with this id would have its cgroup directly below this path, or beside
/// what was removed there.
fn is_made_below(parent: &str, id: &str) -> bool {
    let parent = parent.strip_suffix("/<gone>").unwrap_or(parent);
    let path = format!("{}/{id}", parent.trim_end_matches('/'));
    Origin::of(path.as_bytes()).container().is_some()
}
