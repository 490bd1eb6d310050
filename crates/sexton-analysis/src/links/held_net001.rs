//! Something holds the core that network polling waits for: a reader (CPU002), a real-time task
//! (CPU006), the kernel (CPU001), or what the kernel complained of (KRN001).

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::{Subject, SubjectKind};

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::span::{length, meetings};
use crate::words::figures::{time, times};

pub(super) static OF_READER: LinkRule = LinkRule {
    cause: "CPU002",
    effect: "NET001",
    meet: of_process,
};

pub(super) static OF_REALTIME: LinkRule = LinkRule {
    cause: "CPU006",
    effect: "NET001",
    meet: of_process,
};

pub(super) static OF_CORE: LinkRule = LinkRule {
    cause: "CPU001",
    effect: "NET001",
    meet: of_core,
};

pub(super) static OF_COMPLAINT: LinkRule = LinkRule {
    cause: "KRN001",
    effect: "NET001",
    meet: of_core,
};

const SLACK: Duration = Duration::from_millis(500);

/// The process that held the core is the cause's.
fn of_process(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let core = &effect.subject;
    let holder = holders(effect).find(|process| cause.touches(process));
    match (holder, meetings(cause, effect, core, SLACK).count()) {
        (_, 0) => Meeting::Strangers,
        (Some(process), n) => {
            let text = format!(
                "process {} occupied core {} while NAPI polling was delayed there, {}",
                process.name,
                core.name,
                times(n)
            );
            let evidence = Evidence::speaks_for("napi: stack on the core", text);
            Meeting::Joined(Confidence::CERTAIN, vec![evidence])
        }
        (None, _) if holders(effect).next().is_some() => {
            let text = format!(
                "another process occupied core {} while NAPI polling was delayed",
                core.name
            );
            Meeting::Apart(vec![Evidence::against("napi: stack on the core", text)])
        }
        (None, _) => {
            let text = "which process occupied the core";
            Meeting::Joined(Confidence::POSSIBLE, vec![Evidence::missing("napi", text)])
        }
    }
}

/// The core that polling waits for is the core that is lost.
fn of_core(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let core = &effect.subject;
    let met: Vec<_> = meetings(cause, effect, core, SLACK).collect();
    let Some((_, longest)) = met.iter().max_by_key(|(_, wait)| (length(wait), wait.from)) else {
        return Meeting::Strangers;
    };
    let text = format!(
        "NAPI polling was delayed up to {} on core {} at the same time",
        time(length(longest)),
        core.name
    );
    let mut evidence = vec![Evidence::speaks_for("napi, cores", text).at(longest.from)];
    let known: Vec<&Subject> = cause.touched_of(SubjectKind::Process).collect();
    let same = holders(effect).any(|holder| known.contains(&holder));
    if same {
        let text = "the same process occupied the core and delayed NAPI polling";
        evidence.push(Evidence::speaks_for("napi, stacks", text));
    } else if known.is_empty() || holders(effect).next().is_none() {
        let text = "which process occupied the core, on both sides";
        evidence.push(Evidence::missing("napi, stacks", text));
    }
    let sure = if same {
        Confidence::CERTAIN
    } else {
        Confidence::LIKELY
    };
    Meeting::Joined(sure, evidence)
}

fn holders(effect: &Finding) -> impl Iterator<Item = &Subject> {
    effect.touched_of(SubjectKind::Process)
}
