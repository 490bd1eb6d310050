use sexton_model::fact::nic::{NIC_CARRIER_CHANGES, NIC_TX_TIMEOUTS};

use super::*;
use crate::testing::story::{Story, subject, words};

fn ens5() -> Subject {
    subject(SubjectKind::Device, "ens5")
}

#[test]
fn a_reset_two_hours_ago_is_part_of_the_story() {
    let story = Story::default()
        .line(
            100.0,
            &ens5(),
            "nic_tx_timeout",
            &[("device", "ens5"), ("queue", "5"), ("cpu", "42")],
        )
        .line(100.1, &ens5(), "nic_reset", &[("device", "ens5")])
        .heard("klog", 7_300.0);
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id().as_str(), "NIC001:ens5");
    assert_eq!(
        (found[0].severity, found[0].confidence),
        (Severity::Serious, Confidence::CERTAIN)
    );
    assert!(
        found[0]
            .title
            .contains("NIC ens5: 1 reset, last 2 h before"),
        "{}",
        found[0].title
    );
    assert!(found[0].touches(&subject(SubjectKind::Queue, "ens5/tx-5")));
    assert!(found[0].touches(&Subject::cpu(42)));
}

#[test]
fn a_line_that_a_program_wrote_is_weak_and_says_so() {
    let written = [("device", "ens5"), ("written_by", "userspace")];
    let story = Story::default().line(100.0, &ens5(), "nic_tx_timeout", &written);
    let found = story.found_by(&RULE);
    assert_eq!(
        (found[0].severity, found[0].confidence),
        (Severity::Warning, Confidence::WEAK)
    );
    assert!(
        words(&found[0]).contains("written by a program"),
        "{}",
        words(&found[0])
    );
    assert!(
        words(&found[0]).contains("against: "),
        "{}",
        words(&found[0])
    );
}

#[test]
fn counters_that_grow_count_and_old_ones_are_notes() {
    let queue = subject(SubjectKind::Queue, "ens5/tx-3");
    let counter = |first, last| {
        Story::default()
            .heard("klog", 1.0)
            .sample("nics", 10.0, &queue, &NIC_TX_TIMEOUTS, first)
            .sample("nics", 20.0, &queue, &NIC_TX_TIMEOUTS, last)
            .found_by(&RULE)
    };
    let grown = counter(0.0, 2.0);
    assert_eq!(
        (grown[0].severity, grown[0].confidence),
        (Severity::Serious, Confidence::CERTAIN)
    );
    assert!(grown[0].touches(&queue));
    // It may have been 200 days ago.
    let old = counter(2.0, 2.0);
    assert_eq!(
        (old[0].severity, old[0].confidence),
        (Severity::Note, Confidence::POSSIBLE)
    );
    assert!(counter(0.0, 0.0).is_empty());
    // A driver that was loaded anew begins at zero again.
    assert_eq!(counter(7.0, 0.0)[0].confidence, Confidence::POSSIBLE);
}

#[test]
fn a_link_that_flaps_is_no_reset() {
    let story = Story::default()
        .line(100.0, &ens5(), "link_down", &[("device", "ens5")])
        .line(103.0, &ens5(), "link_up", &[("device", "ens5")])
        .sample("nics", 99.0, &ens5(), &NIC_CARRIER_CHANGES, 1.0)
        .sample("nics", 104.0, &ens5(), &NIC_CARRIER_CHANGES, 3.0);
    assert!(story.found_by(&RULE).is_empty());
}

#[test]
fn without_the_log_it_is_not_judged() {
    let told = Story::default().heard("nics", 1.0).told_by(&RULE);
    assert_eq!(told.not_judged.len(), 1);
}
