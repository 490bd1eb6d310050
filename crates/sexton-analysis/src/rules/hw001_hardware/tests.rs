use sexton_model::finding::Confidence;

use super::*;
use crate::testing::story::{Story, subject};

fn watched() -> Story {
    Story::default()
        .heard("klog", 10_000.0)
        .heard("klog", 10_030.0)
}

fn about(device: &str) -> Subject {
    subject(SubjectKind::Device, device)
}

fn check(
    class: &str,
    device: &str,
    says: &[(&'static str, &str)],
    severity: Severity,
    title: &str,
) {
    let mut says = says.to_vec();
    says.push(("device", device));
    let found = watched()
        .line(10_003.0, &about(device), class, &says)
        .found_by(&RULE);
    assert_eq!(found.len(), 1, "{class}");
    assert_eq!(found[0].severity, severity, "{}", found[0].title);
    let expected = format!("{title} once, last 27 s before the end of the watch");
    assert_eq!(found[0].title, expected);
    assert_eq!(found[0].subject, about(device));
}

#[test]
fn each_device_is_named_with_what_it_did() {
    let title = "disk nvme0 did not answer in time";
    check("disk_timeout", "nvme0", &[], Severity::Warning, title);
    let title = "disk sda failed to read or write";
    check("disk_error", "sda", &[], Severity::Serious, title);
    let says = [("xid", "79"), ("what", "GPU has fallen off the bus.")];
    let title = "GPU 0000:65:00 reported Xid 79 (GPU has fallen off the bus)";
    check("gpu_xid", "0000:65:00", &says, Severity::Serious, title);
    let title = "memory controller MC3 reported an uncorrected error";
    check("hw_uncorrected", "MC3", &[], Severity::Serious, title);
}

#[test]
fn what_was_corrected_or_is_the_programs_own_is_a_note() {
    let title = "memory controller MC0 reported an error that was corrected";
    check("hw_corrected", "MC0", &[], Severity::Note, title);
    let says = [
        ("xid", "31"),
        ("what", "pid=1234, name=python, Ch 00000008"),
    ];
    check(
        "gpu_xid",
        "0000:65:00",
        &says,
        Severity::Note,
        "GPU 0000:65:00 reported Xid 31",
    );
    let says = [("xid", "63"), ("what", "Row Remapper: New row marked")];
    let title = "GPU 0000:65:00 reported Xid 63 (Row Remapper: New row marked)";
    check("gpu_xid", "0000:65:00", &says, Severity::Warning, title);
}

#[test]
fn the_status_of_a_machine_check_tells_whether_it_was_corrected() {
    let of = |status: &str| {
        let says = [("cpu", "3"), ("status", status)];
        let story = watched().line(10_003.0, &Subject::cpu(3), "hw_corrected", &says);
        story.found_by(&RULE)[0].severity
    };
    assert_eq!(of("8c00004000010090"), Severity::Note);
    assert_eq!(of("be00000000800400"), Severity::Serious);
}

#[test]
fn drives_without_a_medium_and_devices_of_software_are_no_hardware() {
    for device in ["fd0", "sr0", "loop3", "zram0", "nbd0", "dm-1"] {
        let says = [("device", device)];
        let story = watched().line(10_003.0, &about(device), "disk_error", &says);
        assert!(story.found_by(&RULE).is_empty(), "{device}");
    }
    let other = watched().line(10_003.0, &about("ens5"), "nic_reset", &[("device", "ens5")]);
    assert!(other.found_by(&RULE).is_empty());
}

#[test]
fn what_is_old_or_written_by_a_program_is_a_note() {
    let old = watched().line(100.0, &about("sda"), "disk_error", &[("device", "sda")]);
    assert_eq!(old.found_by(&RULE)[0].severity, Severity::Note);
    let forged = [("device", "sda"), ("written_by", "userspace")];
    let forged = watched().line(10_003.0, &about("sda"), "disk_error", &forged);
    let found = forged.found_by(&RULE);
    assert_eq!(
        (found[0].severity, found[0].confidence),
        (Severity::Note, Confidence::WEAK)
    );
}

#[test]
fn an_address_or_a_port_names_the_device() {
    let node = Subject::node();
    let bus = watched().line(
        10_003.0,
        &node,
        "hw_uncorrected",
        &[("bus", "0000:00:02.0")],
    );
    assert_eq!(bus.found_by(&RULE)[0].subject, about("0000:00:02.0"));
    let port = watched().line(10_003.0, &node, "disk_error", &[("port", "1.00")]);
    assert_eq!(port.found_by(&RULE)[0].subject, about("ata1.00"));
}

#[test]
fn neither_an_old_line_nor_a_forged_one_hides_what_goes_wrong_now() {
    let sda = [("device", "sda")];
    let forged = [("device", "sda"), ("written_by", "userspace")];
    let check = |seconds: f64, graver: &[(&'static str, &str)]| {
        let found = watched()
            .line(seconds, &about("sda"), "disk_error", graver)
            .line(10_003.0, &about("sda"), "disk_timeout", &sda)
            .line(10_013.0, &about("sda"), "disk_timeout", &sda)
            .found_by(&RULE);
        assert_eq!(
            (found[0].severity, found[0].confidence),
            (Severity::Warning, Confidence::CERTAIN)
        );
        assert_eq!(
            found[0].title,
            "disk sda did not answer in time twice, last 17 s before the end of the watch"
        );
        assert_eq!(
            found[0].evidence[0].text,
            "3 lines about it in the kernel log"
        );
        assert_eq!(found[0].evidence[1].text, "disk_timeout");
    };
    check(100.0, &sda);
    check(10_020.0, &forged);
}
