use std::collections::BTreeSet;

use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::napi::NAPI_STARVED;
use sexton_model::fact::sexton::{SEXTON_SENSORS, SensorList};
use sexton_model::fact::stack::PROCESS_ON_CORE;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use super::*;
use crate::testing::story::{Story, subject};
use crate::testing::{Watch, at, census};

/// A reader that holds core 1 while polling of a device waits for it.
fn reader(story: Story) -> Story {
    let stack = "do_syscall_64;vfs_read;memory_stat_show";
    let sampled = [
        ("comm", "exporter"),
        ("cpu", "1"),
        ("interval_ns", "1000000000"),
        ("kernel_ratio", "0.9"),
        ("hot_stack", stack),
    ];
    let starved = [
        ("what", "napi/ens5-8193"),
        ("waited_ns", "900000000"),
        ("holder_pid", "7"),
        ("holder_comm", "exporter"),
        ("stack", stack),
    ];
    let process = subject(SubjectKind::Process, "7");
    (0..6).fold(story, |story, second| {
        let seconds = 101.0 + f64::from(second);
        story
            .event("stacks", seconds, &process, &PROCESS_ON_CORE, &sampled)
            .event("napi", seconds, &Subject::cpu(1), &NAPI_STARVED, &starved)
    })
}

fn stuck(story: Story, written_by: &'static str) -> Story {
    let ens5 = subject(SubjectKind::Device, "ens5");
    let more = [("device", "ens5"), ("written_by", written_by)];
    story
        .line(106.5, &ens5, "nic_tx_timeout", &more)
        .heard("klog", 90.0)
}

#[test]
fn a_doubtful_end_does_not_weaken_what_is_sure() {
    let forged = stuck(reader(Story::default()), "userspace").judged();
    assert_eq!(forged.confidence, Some(Confidence::CERTAIN));
    assert!(!forged.headline.contains("ens5:"), "{}", forged.headline);
    assert_eq!(forged.chains[0].len(), 3, "{:?}", forged.chains);
    let real = stuck(reader(Story::default()), "kernel").judged();
    assert!(
        real.headline.ends_with("; NIC ens5: 1 transmit timeout"),
        "{}",
        real.headline
    );
}

#[test]
fn what_lies_between_is_part_of_the_one_chain() {
    let story = reader(Story::default()).core(1, (100.0, 107.0), (0.95, 0.0));
    let diagnosis = stuck(story, "kernel").judged();
    let ids: Vec<&str> = diagnosis.chains[0].iter().map(FindingId::as_str).collect();
    assert_eq!(
        ids,
        ["CPU002:exporter", "CPU001:1", "NET001:1", "NIC001:ens5"]
    );
    assert_eq!(diagnosis.chains.len(), 1);
}

#[test]
fn symptoms_without_a_cause_say_so() {
    let diagnosis = stuck(Story::default(), "kernel").judged();
    assert_eq!(diagnosis.state, State::SymptomsOnly);
    assert!(
        diagnosis
            .headline
            .starts_with("NIC ens5: 1 transmit timeout")
    );
}

#[test]
fn what_is_over_is_history() {
    let ens5 = subject(SubjectKind::Device, "ens5");
    let line = |seconds: f64| {
        let more = [("device", "ens5"), ("written_by", "kernel")];
        let story = Story::default().line(100.0, &ens5, "nic_tx_timeout", &more);
        let story = (0..3).fold(story, |story, i| {
            story.core(1, (seconds + f64::from(i), seconds + 30.0), (0.1, 0.0))
        });
        story.heard("klog", seconds).judged()
    };
    assert_eq!(line(110.0).state, State::SymptomsOnly);
    let later = line(5_000.0);
    assert!(later.findings.len() == 1, "{:#?}", later.findings);
    assert!(
        !matches!(later.state, State::SymptomsOnly | State::CauseFound),
        "{:?}",
        later.state
    );
    assert_eq!(later.confidence, None);
}

#[test]
fn a_note_of_now_does_not_make_history_a_trouble() {
    let ens5 = subject(SubjectKind::Device, "ens5");
    let device = [("device", "ens5")];
    let hog = [("cpu", "1"), ("seconds", "0")];
    let diagnosis = Story::default()
        .line(100.0, &ens5, "nic_tx_timeout", &device)
        .core(1, (5_000.0, 5_003.0), (0.1, 0.0))
        .line(5_002.0, &Subject::cpu(1), "softirq_pending", &hog)
        .heard("klog", 5_000.0)
        .judged();
    let severities = diagnosis.findings.iter().map(|finding| finding.severity);
    let severities: Vec<Severity> = severities.collect();
    assert_eq!(severities, [Severity::Note, Severity::Serious]);
    assert!(
        !matches!(diagnosis.state, State::SymptomsOnly | State::CauseFound),
        "{}",
        diagnosis.headline
    );
}

/// A quiet node on which all sensors but one were at work.
fn quiet_without(sensor: &str) -> Watch {
    let mut watch = Watch::new(100, 20);
    watch.add(census(105, &[]));
    watch.without(sensor)
}

/// The same, by a sexton that says which sensors it has.
fn judged_without(sensor: &str) -> Diagnosis {
    let all = quiet_without("none").records;
    let sensors: BTreeSet<String> = all.iter().map(|record| record.sensor.to_string()).collect();
    let sensors = sensors.into_iter().collect();
    let mut watch = quiet_without(sensor);
    let mut out = Sink::new("sexton", at(100));
    let node = Subject::node();
    out.event(at(100), &node, &SEXTON_SENSORS, SensorList { sensors });
    watch.add(out);
    watch.diagnose()
}

#[test]
fn a_vital_sign_that_had_no_data_makes_a_node_blind() {
    let whole = judged_without("none");
    assert_eq!(whole.state, State::Healthy, "{}", whole.headline);
    for sensor in ["disks", "processes", "limits", "filesystems", "klog"] {
        assert_eq!(judged_without(sensor).state, State::Blind, "{sensor}");
    }
    assert!(
        judged_without("disks")
            .headline
            .contains("saturated disks unseen")
    );
}

#[test]
fn an_older_recording_is_not_blind_and_says_what_was_not_assessed() {
    let diagnosis = quiet_without("disks").diagnose();
    assert_eq!(diagnosis.state, State::Healthy, "{}", diagnosis.headline);
    assert!(
        diagnosis
            .headline
            .contains("an older sexton recorded this: 1 vital sign not assessed"),
        "{}",
        diagnosis.headline
    );
    // Every sexton could read the kernel's log.
    assert_eq!(quiet_without("klog").diagnose().state, State::Blind);
}
