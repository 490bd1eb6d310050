//! The link went down and came back: the cable, the switch, the other end.

use std::time::Duration;

use sexton_model::diagnosis::Explanation;
use sexton_model::fact::nic::NIC_CARRIER_CHANGES;
use sexton_model::finding::{Evidence, Finding};
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use super::{any_of, not_seen, plays_a_part, ruled_out};
use crate::case::Case;
use crate::evidence::kernel_log;
use crate::words::figures::time;

const NAME: &str = "link flap";

/// A reset takes the link down for a moment, so only what comes before it explains it.
const BEFORE: Duration = Duration::from_secs(30);

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(findings, &["NIC001", "JOB001"]) {
        return None;
    }
    if !case.heard("klog") && !case.heard("nics") {
        return not_seen(case, NAME, "klog");
    }
    let flaps = flaps(case);
    let resets = findings.iter().filter(|finding| finding.code == "NIC001");
    let met = resets.into_iter().find_map(|finding| {
        finding.episodes.iter().find_map(|episode| {
            let flap = flaps.iter().find(|(at, device)| {
                finding.touches(device) && *at <= episode.to && episode.to.since(*at) <= BEFORE
            });
            flap.map(|(at, device)| (episode.to.since(*at), device))
        })
    });
    match met {
        Some((delay, device)) => {
            let text = format!(
                "the link of {device} went down {} before the reset",
                time(delay)
            );
            plays_a_part(NAME, Evidence::speaks_for("klog, nics", text))
        }
        None => {
            let text = match flaps.len() {
                0 => "no link-down event in the log or the counters".into(),
                n => format!(
                    "{}, none shortly before the reset",
                    crate::words::figures::plural(n as u64, "link-down event")
                ),
            };
            ruled_out(NAME, Evidence::against("klog, nics", text))
        }
    }
}

/// When links went down.
fn flaps(case: &Case<'_>) -> Vec<(Moment, Subject)> {
    let lines = kernel_log::lines(case, &["link_down"]);
    let mut all: Vec<(Moment, Subject)> = lines
        .iter()
        .map(|line| (line.at(), line.subject().clone()))
        .collect();
    for (device, records) in case.by_subject(&NIC_CARRIER_CHANGES) {
        let grew = records
            .windows(2)
            .filter(|pair| pair[1].value() > pair[0].value());
        all.extend(grew.map(|pair| (pair[1].at, device.clone())));
    }
    all.sort_unstable();
    all
}
