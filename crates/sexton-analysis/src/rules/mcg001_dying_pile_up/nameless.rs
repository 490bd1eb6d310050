//! A pile that could only be counted: what is known of it all the same.

use sexton_model::fact::memcg::MEMCG_DYING;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use super::CODE;
use crate::case::Case;
use crate::evidence::nameless::Nameless;
use crate::evidence::origins::Origin;
use crate::evidence::trend::Trend;
use crate::words::figures;

/// The finding: of the parent that they lie below, if that is known, else of the node.
pub(super) fn finding(case: &Case<'_>, dying: f64) -> Finding {
    let node = Subject::node();
    let points: Vec<_> = case.samples(&MEMCG_DYING, &node).collect();
    let trend = Trend::of(&points).filter(|trend| trend.least() > 0.0);
    let grows = trend.map_or(String::new(), |trend| {
        format!(", {}", figures::per_hour(trend.per_second))
    });
    let count = figures::count(dying as u64);
    let nameless = case.nameless();
    let parent = nameless.and_then(|known| known.parent.as_ref());
    let (subject, place) = match parent {
        Some(parent) => (
            Subject::new(SubjectKind::Cgroup, parent.path),
            format!("most of them below {}", parent.path),
        ),
        None => (node, "origin unknown".to_owned()),
    };
    let mut evidence =
        vec![Evidence::speaks_for("memcg: count", format!("{count} dying")).value(dying)];
    evidence.extend(parent.map(|parent| parent.evidence.clone()));
    let mut touched = vec![subject.clone()];
    if let Some(nameless) = nameless {
        add_creations(case, nameless, &mut touched, &mut evidence);
    }
    evidence.push(Evidence::missing(
        "memcg: census",
        "their paths and what pins them: only counts are available here",
    ));
    touched.sort();
    touched.dedup();
    Finding {
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
    }
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
