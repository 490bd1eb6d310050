use sexton_model::fact::napi::NAPI_STARVED;
use sexton_model::fact::stack::{PROCESS_ON_CORE, ProcessOnCore, StackShare};

use super::*;
use crate::testing::story::{Story, subject, words};

const WALK: &str = "do_syscall_64;vfs_read;seq_read;memcg_numa_stat_show;cpumask_next";
const READ: &str =
    "do_syscall_64;vfs_read;seq_read_iter;memory_stat_show;memory_stat_format;vsnprintf";
const ZERO: &str = "do_syscall_64;vfs_read;read_zero;clear_user";

fn seen(comm: &str, ratio: &str, stack: &str, n: u32) -> Story {
    let mut story = Story::default();
    for i in 0..n {
        story = story.event(
            "stacks",
            20.0 + f64::from(i),
            &subject(SubjectKind::Process, "812"),
            &PROCESS_ON_CORE,
            &[
                ("comm", comm),
                ("cpu", "3"),
                ("unit", "reader.service"),
                ("interval_ns", "1000000000"),
                ("kernel_ratio", ratio),
                ("hot_stack", stack),
                ("hot_share", "0.4"),
            ],
        );
    }
    story
}

#[test]
fn any_reader_that_walks_is_named_with_function_and_core() {
    let found = seen("anything", "0.93", WALK, 4).found_by(&RULE);
    assert_eq!(found.len(), 1);
    let finding = &found[0];
    assert_eq!(finding.id().as_str(), "CPU002:anything");
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Serious, Confidence::CERTAIN)
    );
    for expected in [
        "anything (pid 812)",
        "93 % of core 3",
        "walking memory cgroups",
    ] {
        assert!(finding.title.contains(expected), "{}", finding.title);
    }
    assert_eq!(finding.figure, "93 % of core 3, memcg_numa_stat_show");
    for (kind, name) in [
        (SubjectKind::Process, "812"),
        (SubjectKind::Cpu, "3"),
        (SubjectKind::Unit, "reader.service"),
    ] {
        assert!(finding.touches(&subject(kind, name)), "{name}");
    }
}

#[test]
fn a_reader_on_a_new_kernel_reads_and_does_not_walk() {
    let found = seen("exporter", "0.5", READ, 1).found_by(&RULE);
    assert_eq!(
        (found[0].severity, found[0].confidence),
        (Severity::Warning, Confidence::LIKELY)
    );
    assert!(
        found[0].title.contains("reading memory cgroup statistics"),
        "{}",
        found[0].title
    );
}

#[test]
fn a_little_reading_and_other_work_are_not_it() {
    assert!(seen("kubelet", "0.02", WALK, 9).found_by(&RULE).is_empty());
    assert!(seen("dd", "0.99", ZERO, 9).found_by(&RULE).is_empty());
}

fn starved(stack: &str) -> Story {
    Story::default().event(
        "napi",
        20.0,
        &Subject::cpu(3),
        &NAPI_STARVED,
        &[
            ("what", "net_rx"),
            ("waited_ns", "700000000"),
            ("holder_pid", "812"),
            ("holder_comm", "cadvisor"),
            ("stack", stack),
        ],
    )
}

#[test]
fn who_holds_a_core_that_the_network_waits_for_is_enough() {
    let found = starved(WALK).found_by(&RULE);
    assert_eq!(found[0].id().as_str(), "CPU002:cadvisor");
    assert!(
        words(&found[0]).contains("missing: "),
        "{}",
        words(&found[0])
    );
}

#[test]
fn without_stacks_nobody_is_cleared() {
    let told = starved(ZERO).told_by(&RULE);
    assert!(told.findings.is_empty());
    assert_eq!(told.not_judged.len(), 1);
    assert_eq!(
        Story::default()
            .heard("klog", 1.0)
            .told_by(&RULE)
            .not_judged
            .len(),
        1
    );
}

/// A process with this part of core 3 and these kernel stacks.
fn with_stacks(ratio: f64, stacks: &[(u64, &str)], own: Option<bool>) -> Vec<Finding> {
    let frames = |stack: &str| stack.split(';').map(str::to_owned).collect();
    let shares = stacks.iter().map(|(samples, stack)| StackShare {
        samples: *samples,
        frames: frames(stack),
    });
    let says = ProcessOnCore {
        comm: Some("kubelet".to_owned()),
        cpu: Some(3),
        interval_ns: Some(10_000_000_000),
        kernel_ratio: Some(ratio),
        hot_stack: frames(ZERO),
        hot_share: Some(0.3),
        stacks: shares.collect(),
        own,
        ..ProcessOnCore::default()
    };
    let process = subject(SubjectKind::Process, "812");
    let story = Story::default().says("stacks", 20.0, &process, &PROCESS_ON_CORE, says);
    story.found_by(&RULE)
}

#[test]
fn the_share_of_all_stacks_counts_and_not_the_hottest() {
    let iter = "vfs_read;seq_read;memcg_numa_stat_show;mem_cgroup_iter";
    let stacks = [(30, ZERO), (28, WALK), (25, iter)];
    let found = with_stacks(0.9, &stacks, None);
    assert_eq!(found[0].id().as_str(), "CPU002:kubelet");
    // Not all of the 90 % that the process had in the kernel.
    assert!(
        found[0].title.contains("spends 57 % of core 3 walking")
            && found[0].figure.starts_with("57 %"),
        "{}, {}",
        found[0].title,
        found[0].figure
    );
    let words = words(&found[0]);
    assert!(
        words.contains("64 % of its kernel samples were walking memory cgroups"),
        "{words}"
    );
    // Of a quarter of a core less than the limit goes into it.
    assert!(with_stacks(0.25, &stacks, None).is_empty());
    assert!(with_stacks(0.9, &stacks[..1], None).is_empty());
}

#[test]
fn what_sexton_reads_itself_is_no_finding() {
    let stacks = [(28, WALK)];
    assert!(with_stacks(0.9, &stacks, Some(true)).is_empty());
    assert_eq!(with_stacks(0.9, &stacks, None).len(), 1);
}
