//! What saturates a disk is what has the core in the kernel: reading and writing is done there.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::span;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "IO001",
    effect: "CPU001",
    meet,
};

/// Sensors look at different moments.
const SLACK: Duration = Duration::from_secs(2);

fn meet(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    // The rule lists who had most of the core's kernel time first.
    let first = effect.touched_of(SubjectKind::Process).next();
    let Some(process) = first.filter(|process| cause.touches(process)) else {
        return Meeting::Strangers;
    };
    let is_then = cause.episodes.iter().any(|busy| {
        let mut stretches = effect.episodes.iter();
        stretches.any(|stretch| span::overlap(busy, stretch, SLACK))
    });
    let (core, disk) = (&effect.subject.name, &cause.subject.name);
    if !is_then {
        let text = format!("disk {disk} was busy at another time");
        return Meeting::Apart(vec![Evidence::against("disks, cores", text)]);
    }
    let text = format!(
        "process {} used disk {disk} most, and had most of core {core} in the kernel meanwhile",
        process.name
    );
    let evidence = Evidence::speaks_for("disks, stacks, cores", text);
    Meeting::Joined(Confidence::CERTAIN, vec![evidence])
}
