//! What holds a core is what the kernel complains of.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::{Subject, SubjectKind};

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::span::meetings;

pub(super) static OF_READER: LinkRule = LinkRule {
    cause: "CPU002",
    effect: "KRN001",
    meet: of_reader,
};

pub(super) static OF_CORE: LinkRule = LinkRule {
    cause: "CPU001",
    effect: "KRN001",
    meet: of_core,
};

pub(super) static OF_REALTIME: LinkRule = LinkRule {
    cause: "CPU006",
    effect: "KRN001",
    meet: of_held_core,
};

/// A watchdog looks every few seconds.
const SLACK: Duration = Duration::from_secs(4);

fn of_reader(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let of_process = effect
        .touched_of(SubjectKind::Process)
        .find(|one| cause.touches(one));
    let of_name = effect
        .touched_of(SubjectKind::Task)
        .find(|one| cause.touches(one));
    let (subject, sure) = match (of_process, of_name) {
        (Some(process), _) => (process, Confidence::CERTAIN),
        (None, Some(task)) => (task, Confidence::LIKELY),
        (None, None) => return Meeting::Strangers,
    };
    let text = format!("the kernel names {subject}, which is the reader");
    Meeting::Joined(sure, vec![Evidence::speaks_for("klog", text)])
}

fn of_core(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    on_core(&cause.subject, cause, effect)
}

/// Any of the cores that the task holds.
fn of_held_core(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let mut cores = cause.touched_of(SubjectKind::Cpu);
    let joined = cores.find_map(|core| match on_core(core, cause, effect) {
        Meeting::Strangers => None,
        joined => Some(joined),
    });
    joined.unwrap_or(Meeting::Strangers)
}

fn on_core(core: &Subject, cause: &Finding, effect: &Finding) -> Meeting {
    match meetings(cause, effect, core, SLACK).count() {
        0 => Meeting::Strangers,
        _ => {
            let text = format!("the kernel reports core {} at the same time", core.name);
            let evidence = Evidence::speaks_for("klog, cores", text);
            Meeting::Joined(Confidence::CERTAIN, vec![evidence])
        }
    }
}
