//! What a unit is set to do, and what that leads to on this node.
//!
//! The causes are judged from unit files alone, so they can meet what was seen only by the
//! name of the unit.

use sexton_model::finding::{Confidence, Evidence, Finding};

use super::{LinkRule, Meeting};
use crate::case::Case;

/// A unit that cannot start here is restarted for ever, or retries inside.
pub(super) static CANNOT_START: LinkRule = of_unit("UNIT006", "UNIT001");
pub(super) static CANNOT_START_INSIDE: LinkRule = of_unit("UNIT006", "UNIT002");

/// Settings without a limit let a loop go on.
pub(super) static ENDLESS: LinkRule = of_unit("UNIT005", "UNIT001");

/// A unit without use here fails and is restarted, or retries inside.
pub(super) static UNWANTED: LinkRule = of_unit("UNIT004", "UNIT001");
pub(super) static UNWANTED_INSIDE: LinkRule = of_unit("UNIT004", "UNIT002");

/// systemd restarts what ends, and each run churns.
pub(super) static ENDLESS_INSIDE: LinkRule = LinkRule {
    cause: "UNIT005",
    effect: "UNIT002",
    meet: restarts,
};

const fn of_unit(cause: &'static str, effect: &'static str) -> LinkRule {
    LinkRule {
        cause,
        effect,
        meet: same_unit,
    }
}

/// What the files of a unit say leads to what it does: how surely, and how.
fn same_unit(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    if cause.subject != effect.subject {
        return Meeting::Strangers;
    }
    let (sure, text) = match (cause.code, effect.code) {
        ("UNIT006", "UNIT001") => (
            Confidence::CERTAIN,
            "it cannot start here, so each start fails",
        ),
        ("UNIT006", _) => (
            Confidence::LIKELY,
            "what it needs is not here, and it retries by itself",
        ),
        ("UNIT005", _) => (
            Confidence::CERTAIN,
            "its settings let systemd restart it for ever",
        ),
        (_, "UNIT001") => (Confidence::LIKELY, "it is enabled where it has no use"),
        _ => (
            Confidence::LIKELY,
            "it is enabled where it has no use, and retries by itself",
        ),
    };
    Meeting::Joined(sure, vec![Evidence::speaks_for("units: settings", text)])
}

/// Settings about restarts explain churn only where systemd restarts.
fn restarts(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    if cause.subject != effect.subject {
        return Meeting::Strangers;
    }
    let n = case.latest(&sexton_model::fact::unit::UNIT_RESTARTS, &effect.subject);
    match n.filter(|n| *n > 0.0) {
        Some(n) => Meeting::Joined(
            Confidence::POSSIBLE,
            vec![Evidence::speaks_for(
                "units: NRestarts",
                format!("NRestarts is {n}"),
            )],
        ),
        None => Meeting::Apart(vec![Evidence::against(
            "units: NRestarts",
            "NRestarts is 0: the unit itself creates them, systemd does not restart it",
        )]),
    }
}
