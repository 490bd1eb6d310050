//! A pile that could only be counted: what is known of it all the same.

use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use super::CODE;
use crate::case::Case;
use crate::evidence::growth::{FLOOR, GROWING_FLOOR, LEAST_PER_HOUR};
use crate::evidence::nameless::Nameless;
use crate::evidence::origins::Origin;
use crate::words::figures;

/// The finding, if they are many or become more. Of many, it is of the parent that they lie below,
/// if that is known, else of the node. Fewer are trouble because they become more, so then it is of
/// the directory that those are removed from.
pub(super) fn finding(case: &Case<'_>, dying: f64) -> Option<Finding> {
    let nameless = case.nameless()?;
    let trend = nameless.trend();
    let parent = nameless.parent.as_ref();
    let (subject, place) = match parent {
        _ if dying < case.limit(&FLOOR) => {
            let per_hour = trend?.per_second * 3600.0;
            let is_pile =
                dying >= case.limit(&GROWING_FLOOR) && per_hour >= case.limit(&LEAST_PER_HOUR);
            let below = nameless.grows_below(case.creations());
            let below = below.filter(|_| is_pile)?;
            let place = format!("new ones come from {below}");
            (Subject::new(SubjectKind::Cgroup, below), place)
        }
        Some(parent) => (
            Subject::new(SubjectKind::Cgroup, parent.path),
            format!("most of them below {}", parent.path),
        ),
        None => (Subject::node(), "origin unknown".to_owned()),
    };
    let grows = trend.map_or(String::new(), |trend| {
        format!(", {}", figures::per_hour(trend.per_second))
    });
    let count = figures::count(dying as u64);
    let mut evidence =
        vec![Evidence::speaks_for("memcg: count", format!("{count} dying")).value(dying)];
    evidence.extend(parent.map(|parent| parent.evidence.clone()));
    let mut touched = vec![subject.clone()];
    add_creations(case, nameless, &mut touched, &mut evidence);
    evidence.push(Evidence::missing(
        "memcg: census",
        "their paths and what pins them: only counts are available here",
    ));
    touched.sort();
    touched.dedup();
    Some(Finding {
        code: CODE,
        severity: Severity::Warning,
        confidence: Confidence::CERTAIN,
        title: format!("{count} dying memory cgroups{grows}; {place}"),
        figure: format!("{count} dying{grows}"),
        since: None,
        evidence,
        remedies: remedies(&subject),
        subject,
        touched,
        episodes: Vec::new(),
    })
}

/// The same for a pile of which only the directory is known, if most of the dying ones are there.
pub(super) fn add_held_below(
    case: &Case<'_>,
    origin: &Origin<'_>,
    touched: &mut Vec<Subject>,
    evidence: &mut Vec<Evidence>,
) {
    let Some(nameless) = case.nameless() else {
        return;
    };
    let parent = nameless.parent.as_ref();
    if parent.is_some_and(|parent| Some(parent.path) == origin.parent()) {
        add_creations(case, nameless, touched, evidence);
    }
}

/// Those that were seen to be made, removed and never released are of the pile.
fn add_creations(
    case: &Case<'_>,
    nameless: &Nameless<'_>,
    touched: &mut Vec<Subject>,
    evidence: &mut Vec<Evidence>,
) {
    let patterns = nameless.patterns(case.creations());
    if patterns.is_empty() {
        return;
    }
    for (pattern, n) in &patterns {
        let text = format!(
            "{} cgroups {pattern} were removed during the watch and are still held; dying ones \
             grew by {}",
            figures::count(*n),
            figures::count(nameless.grown() as u64)
        );
        evidence
            .push(Evidence::speaks_for("cgroups: removals without release", text).value(*n as f64));
        touched.push(Subject::new(SubjectKind::Cgroup, pattern.as_str()));
    }
    for requested in case.requested() {
        if patterns.iter().any(|(pattern, _)| requested.has(pattern)) {
            let images = requested.images.iter();
            touched.extend(images.map(|image| Subject::new(SubjectKind::Image, *image)));
            touched.push(requested.subject.clone());
        }
    }
}

fn remedies(subject: &Subject) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if subject.kind == SubjectKind::Cgroup {
        remedies.push(Remedy::command(
            RemedyKind::CleanUp,
            "reclaim them once the source has stopped",
            format!(
                "sudo sexton fix --origin {} --apply",
                shell_word(&subject.name)
            ),
        ));
    }
    remedies.push(Remedy::command(
        RemedyKind::Look,
        "take a census that names them, as root",
        "sudo sexton zombies",
    ));
    remedies
}
