//! A reader holds the core that is lost.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::span::meetings;
use crate::words::figures::{percent, times};

pub(super) static LINK: LinkRule = LinkRule {
    cause: "CPU002",
    effect: "CPU001",
    meet,
};

/// Stacks are summed up over intervals of seconds, the core's time over tenths of one.
const SLACK: Duration = Duration::from_millis(500);

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let core = &effect.subject;
    let n = meetings(cause, effect, core, SLACK).count();
    if n == 0 {
        return Meeting::Strangers;
    }
    // The rule lists who had most of the core's kernel time first.
    let first = effect.touched_of(SubjectKind::Process).next();
    let text = format!(
        "ran on core {} {} while that core was lost",
        core.name,
        times(n)
    );
    let mut evidence = vec![Evidence::speaks_for("stacks, napi, cores", text)];
    if let Some(other) = first.filter(|process| !cause.touches(process)) {
        let text = format!(
            "process {} used more of that core in the kernel",
            other.name
        );
        evidence.push(Evidence::against("stacks", text));
        return Meeting::Apart(evidence);
    }
    let own = case.sightings().iter();
    let own =
        own.filter(|sighting| *sighting.comm == *cause.subject.name && sighting.core == *core);
    let worst = own
        .filter_map(|sighting| sighting.ratio)
        .max_by(f64::total_cmp);
    let confidence = match worst {
        Some(ratio) => {
            let text = format!("used {} of that core in the kernel", percent(ratio));
            evidence.push(Evidence::speaks_for("stacks", text).value(ratio));
            if ratio >= 0.5 {
                Confidence::CERTAIN
            } else {
                Confidence::POSSIBLE
            }
        }
        None => {
            let text = "its share of the core: no samples";
            evidence.push(Evidence::missing("stacks", text));
            Confidence::LIKELY
        }
    };
    Meeting::Joined(confidence, evidence)
}
