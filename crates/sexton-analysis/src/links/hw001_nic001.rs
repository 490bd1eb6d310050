//! A network device whose hardware reports an error is reset.

use std::time::Duration;

use sexton_model::fact::nic::NIC_IDENTITY;
use sexton_model::finding::{Confidence, Evidence, Finding, Severity};
use sexton_model::moment::Moment;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::words::figures::time;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "HW001",
    effect: "NIC001",
    meet,
};

/// The driver notices within seconds, the transmit watchdog after 5 s; a recovery of the PCIe
/// link may take half a minute.
const WITHIN: Duration = Duration::from_secs(60);

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let (hardware, nic) = (&cause.subject, &effect.subject);
    let mut known = case.events(&NIC_IDENTITY);
    let is_address = known
        .any(|event| event.subject == nic && event.says.bus.as_deref() == Some(&*hardware.name));
    // What was corrected resets nothing.
    if cause.severity == Severity::Note || !(hardware == nic || is_address) {
        return Meeting::Strangers;
    }
    let resets = effect.episodes.iter().map(|episode| episode.to);
    let delays = resets.filter_map(|reset| delay(cause, reset));
    let Some(delay) = delays.min() else {
        let text = format!("no error of {} came shortly before a reset", hardware.name);
        return Meeting::Apart(vec![Evidence::against("klog", text)]);
    };
    let text = format!(
        "the hardware reported an error of {} {} before NIC {} was reset",
        hardware.name,
        time(delay),
        nic.name
    );
    let evidence = Evidence::speaks_for("klog, nics", text);
    Meeting::Joined(Confidence::LIKELY, vec![evidence])
}

/// How long before a reset the last error was.
fn delay(cause: &Finding, reset: Moment) -> Option<Duration> {
    let errors = cause.episodes.iter().map(|episode| episode.to);
    let before = errors.filter(|error| *error <= reset);
    let delays = before.map(|error| reset.since(error));
    delays.filter(|delay| *delay <= WITHIN).min()
}
