use sexton_model::fact::napi::NAPI_STARVED;
use sexton_model::fact::stack::PROCESS_ON_CORE;
use sexton_model::subject::{Subject, SubjectKind};

use super::*;
use crate::testing::story::{Story, subject};

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
    assert!(
        forged.headline.contains("perhaps ens5 got stuck"),
        "{}",
        forged.headline
    );
    assert_eq!(forged.chains[0].len(), 3, "{:?}", forged.chains);
    let real = stuck(reader(Story::default()), "kernel").judged();
    assert!(
        real.headline.contains("in the end ens5 got stuck"),
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
    assert!(diagnosis.headline.ends_with("what causes it is not known"));
}
