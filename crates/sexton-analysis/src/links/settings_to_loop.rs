//! What a unit is set to do, and what that leads to on this node.
//!
//! The causes are judged from unit files alone, so they can meet what was seen only by the
//! name of the unit.

use sexton_model::finding::{Confidence, Evidence, Finding};

use super::{LinkRule, Meeting};
use crate::case::Case;

/// A unit that cannot start here is restarted for ever.
pub(super) static CANNOT_START: LinkRule = LinkRule {
    cause: "UNIT006",
    effect: "UNIT001",
    meet: |_, cause, effect| {
        same_unit(
            cause,
            effect,
            Confidence::CERTAIN,
            "it cannot start here, so each start fails",
        )
    },
};

/// Settings without a limit let a loop go on.
pub(super) static ENDLESS: LinkRule = LinkRule {
    cause: "UNIT005",
    effect: "UNIT001",
    meet: |_, cause, effect| {
        same_unit(
            cause,
            effect,
            Confidence::CERTAIN,
            "its settings let systemd restart it for ever",
        )
    },
};

/// A unit without use here fails, and is restarted.
pub(super) static UNWANTED: LinkRule = LinkRule {
    cause: "UNIT004",
    effect: "UNIT001",
    meet: |_, cause, effect| {
        same_unit(
            cause,
            effect,
            Confidence::LIKELY,
            "it is enabled where it has no use",
        )
    },
};

/// A unit without use here retries inside.
pub(super) static UNWANTED_INSIDE: LinkRule = LinkRule {
    cause: "UNIT004",
    effect: "UNIT002",
    meet: |_, cause, effect| {
        same_unit(
            cause,
            effect,
            Confidence::LIKELY,
            "it is enabled where it has no use, and retries by itself",
        )
    },
};

/// What cannot work here is retried inside.
pub(super) static CANNOT_START_INSIDE: LinkRule = LinkRule {
    cause: "UNIT006",
    effect: "UNIT002",
    meet: |_, cause, effect| {
        same_unit(
            cause,
            effect,
            Confidence::LIKELY,
            "what it needs is not here, and it retries by itself",
        )
    },
};

/// systemd restarts what ends, and each run churns.
pub(super) static ENDLESS_INSIDE: LinkRule = LinkRule {
    cause: "UNIT005",
    effect: "UNIT002",
    meet: |case, cause, effect| restarts(case, cause, effect),
};

fn same_unit(cause: &Finding, effect: &Finding, sure: Confidence, text: &str) -> Meeting {
    match cause.subject == effect.subject {
        true => Meeting::Joined(sure, vec![Evidence::speaks_for("units: settings", text)]),
        false => Meeting::Strangers,
    }
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
                format!("systemd has restarted it {n} times"),
            )],
        ),
        None => Meeting::Apart(vec![Evidence::against(
            "units: NRestarts",
            "systemd has not restarted it: what it makes again and again, it makes by itself",
        )]),
    }
}
