//! Programs simply use the cores.

use sexton_model::diagnosis::Explanation;
use sexton_model::fact::core::{CORE_NICE_RATIO, CORE_USER_RATIO};
use sexton_model::finding::Finding;
use sexton_model::subject::{Subject, SubjectKind};

use super::{any_of, by_share, not_seen};
use crate::case::Case;
use crate::evidence::span;
use crate::words::figures::percent;

const NAME: &str = "plain user load";

/// With half of a core's time or more programs are what others wait for.
const MUCH: f64 = 0.5;

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(findings, &["CPU001", "NET001"]) {
        return None;
    }
    let about = ["CPU001", "NET001"];
    let episodes: Vec<(&Subject, &Finding)> = findings
        .iter()
        .filter(|finding| about.contains(&finding.code) && finding.subject.kind == SubjectKind::Cpu)
        .map(|finding| (&finding.subject, finding))
        .collect();
    let worst = episodes
        .into_iter()
        .filter_map(|(core, finding)| Some((mean(case, core, finding)?, core)))
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)));
    let Some((ratio, core)) = worst else {
        return not_seen(case, NAME, "cores");
    };
    let text = format!(
        "programs had {} of core {} while it was held",
        percent(ratio),
        core.name
    );
    by_share(NAME, "cores: /proc/stat", (ratio, MUCH), text)
}

/// The part of a core that programs had in the episodes of a finding.
fn mean(case: &Case<'_>, core: &Subject, finding: &Finding) -> Option<f64> {
    let episodes = finding.episodes.iter();
    let held: Vec<_> = episodes.map(|episode| (episode.from, episode.to)).collect();
    let mean_of = |fact| {
        let samples: Vec<_> = case.samples(fact, core).collect();
        span::mean(&samples, &held)
    };
    Some(mean_of(&CORE_USER_RATIO)? + mean_of(&CORE_NICE_RATIO).unwrap_or(0.0))
}
