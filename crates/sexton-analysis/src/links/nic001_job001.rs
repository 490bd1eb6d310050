//! Work is lost because its connections were.

use sexton_model::finding::{Confidence, Evidence, Finding};

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::words::figures::time;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "NIC001",
    effect: "JOB001",
    meet,
};

fn meet(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let about = |device| effect.touches(device);
    if !about(&cause.subject) {
        return Meeting::Strangers;
    }
    let delay = effect.episodes.iter().filter_map(|death| {
        let resets = cause.episodes.iter().filter(|reset| reset.to <= death.from);
        resets.map(|reset| death.from.since(reset.to)).min()
    });
    let Some(delay) = delay.min() else {
        return Meeting::Strangers;
    };
    let text = format!("it exited {} after {} reset", time(delay), cause.subject);
    Meeting::Joined(
        Confidence::LIKELY,
        vec![
            Evidence::speaks_for("klog, exits", text),
            Evidence::missing("exits", "whether it used that device"),
        ],
    )
}
