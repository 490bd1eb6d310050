//! A disk that reports errors is slow, or stops: its requests are tried again and time out.

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "HW001",
    effect: "IO001",
    meet,
};

fn meet(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let disk = &*effect.subject.name;
    let mut devices = cause.touched_of(SubjectKind::Device);
    // The controller nvme0 has the disk nvme0n1, and the disk sda the partition sda1.
    let same =
        devices.find(|device| disk.starts_with(&*device.name) || device.name.starts_with(disk));
    let Some(device) = same else {
        return Meeting::Strangers;
    };
    let text = format!(
        "the kernel log has errors of {}, and disk {disk} is slow",
        device.name
    );
    Meeting::Joined(
        Confidence::LIKELY,
        vec![Evidence::speaks_for("klog, disks", text)],
    )
}
