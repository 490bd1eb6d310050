//! Tasks hang in the block layer or in a filesystem while a disk does not answer.

use std::time::Duration;

use sexton_model::fact::process::TASKS_BLOCKED;
use sexton_model::finding::{Confidence, Evidence, Finding, Severity};
use sexton_model::subject::Subject;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::kernel_log::{self, Line};
use crate::evidence::kernel_wait;
use crate::evidence::span::earlier;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "HW001",
    effect: "TASK001",
    meet,
};

/// A request that timed out is tried again: twice the time that a disk gets to answer (30 s).
const BEFORE: Duration = Duration::from_secs(60);

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let lines = kernel_log::lines(case, &["disk_timeout", "disk_error"]);
    let own: Vec<Line<'_>> = lines
        .into_iter()
        .filter(|line| is_about(*line, &cause.subject))
        .collect();
    let told = case.events(&TASKS_BLOCKED);
    let mut told = told.filter(|event| *event.subject == effect.subject);
    let wait = &effect.subject.name;
    let is_of_disk = told.any(|event| kernel_wait::is_of_disk(wait, &event.says.stack));
    // An old error explains nothing, and is a note.
    if own.is_empty() || cause.severity == Severity::Note || !is_of_disk {
        return Meeting::Strangers;
    }
    // The kernel logs a timeout long after the request that timed out began.
    let during = own.iter().find(|line| {
        let mut hangs = effect.episodes.iter();
        hangs.any(|hang| earlier(hang.from, BEFORE) <= line.at() && line.at() <= hang.to)
    });
    let disk = &cause.subject.name;
    let Some(line) = during else {
        let text = format!("the errors of disk {disk} are of another time");
        return Meeting::Apart(vec![Evidence::against("klog, processes", text)]);
    };
    let text = format!(
        "they wait for a disk, and disk {disk} did not answer then; which disk each waits for is \
         not known"
    );
    let evidence = Evidence::speaks_for("klog, processes", text).at(line.at());
    Meeting::Joined(Confidence::LIKELY, vec![evidence])
}

/// Whether a line names the device, or its port.
fn is_about(line: Line<'_>, device: &Subject) -> bool {
    let says = line.says();
    let names = [says.device.as_deref(), says.bus.as_deref()];
    let is_port = || {
        let port = device.name.strip_prefix("ata");
        port.is_some() && line.text("port") == port
    };
    names.contains(&Some(&*device.name)) || is_port()
}
