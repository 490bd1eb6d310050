//! A disk that is saturated or stalls keeps tasks in uninterruptible sleep.

use std::time::Duration;

use sexton_model::fact::process::TASKS_BLOCKED;
use sexton_model::finding::{Confidence, Evidence, Finding, Severity};

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::{kernel_wait, span};

pub(super) static LINK: LinkRule = LinkRule {
    cause: "IO001",
    effect: "TASK001",
    meet,
};

/// Sensors look at different moments.
const SLACK: Duration = Duration::from_secs(5);

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let told = case.events(&TASKS_BLOCKED);
    let mut own = told.filter(|event| *event.subject == effect.subject);
    let waits = |stack: &[String]| kernel_wait::is_of_disk(&effect.subject.name, stack);
    if !own.any(|event| waits(&event.says.stack)) {
        return Meeting::Strangers;
    }
    let meet = cause.episodes.iter().any(|one| {
        let mut others = effect.episodes.iter();
        others.any(|other| span::overlap(one, other, SLACK))
    });
    if !meet {
        let text = "the tasks hang at another time";
        return Meeting::Apart(vec![Evidence::against("disks, processes", text)]);
    }
    let text = format!(
        "they wait for a disk, while disk {} does not keep up; which disk each waits for is not \
         known",
        cause.subject.name
    );
    let sure = match cause.severity {
        // A disk that completes nothing holds up all that waits for it.
        Severity::Serious => Confidence::LIKELY,
        _ => Confidence::POSSIBLE,
    };
    Meeting::Joined(sure, vec![Evidence::speaks_for("disks, processes", text)])
}
