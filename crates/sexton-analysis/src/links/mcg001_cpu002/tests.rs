use sexton_model::fact::stack::{PROCESS_ON_CORE, ProcessOnCore};
use sexton_model::finding::{Severity, Stance};
use sexton_model::subject::SubjectKind;
use sexton_model::timeline::Records;

use super::*;
use crate::policy::Policy;
use crate::testing::event;
use crate::testing::story::{Story, subject};

const WALK: &str = "do_syscall_64;vfs_read;seq_read;memcg_numa_stat_show;cpumask_next";
const READ: &str = "do_syscall_64;vfs_read;seq_read_iter;memory_stat_show;memory_stat_format";

/// A reader that was seen with this stack.
fn reader(stack: &str) -> Story {
    reader_of(stack, &[])
}

/// The same, with these statistics open.
fn reader_of(stack: &str, statistics: &[&str]) -> Story {
    let fields = [
        ("comm", "kubelet"),
        ("cpu", "3"),
        ("interval_ns", "1000000000"),
        ("kernel_ratio", "0.9"),
        ("hot_stack", stack),
    ];
    let says = ProcessOnCore {
        statistics: statistics.iter().map(|path| (*path).to_owned()).collect(),
        ..event(&PROCESS_ON_CORE, &fields)
    };
    let process = subject(SubjectKind::Process, "812");
    Story::default().says("stacks", 5_000.0, &process, &PROCESS_ON_CORE, says)
}

/// One comparison of reads: how many were dying, and milliseconds at the root and a leaf.
fn timed(story: Story, seconds: f64, file: &str, dying: u64, root_ms: f64, leaf_ms: f64) -> Story {
    let ns = |ms: f64| format!("{}", (ms * 1e6) as u64);
    story.event(
        "memcg",
        seconds,
        &Subject::node(),
        &MEMCG_READS,
        &[
            ("file", file),
            ("root_ns", &ns(root_ms)),
            ("leaf_ns", &ns(leaf_ms)),
            ("dying", &dying.to_string()),
        ],
    )
}

fn counted(story: Story, live: f64, dying: f64) -> Story {
    let node = Subject::node();
    let story = story.sample("memcg", 5_000.0, &node, &MEMCG_LIVE, live);
    story.sample("memcg", 5_000.0, &node, &MEMCG_DYING, dying)
}

fn meeting(story: &Story) -> Meeting {
    let cause = Finding {
        code: "MCG001",
        subject: Subject::node(),
        severity: Severity::Warning,
        confidence: Confidence::CERTAIN,
        title: String::new(),
        figure: String::new(),
        since: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
        touched: Vec::new(),
        episodes: Vec::new(),
    };
    let effect = Finding {
        code: "CPU002",
        subject: subject(SubjectKind::Task, "kubelet"),
        ..cause.clone()
    };
    let records = Records::new(story.records().to_vec());
    let policy = Policy::default();
    meet(&Case::new(&records, &policy), &cause, &effect)
}

fn joined(story: &Story) -> Option<Confidence> {
    match meeting(story) {
        Meeting::Joined(confidence, _) => Some(confidence),
        Meeting::Apart(_) => None,
        Meeting::Strangers => panic!("they must be compared"),
    }
}

/// The read times of `memory.numa_stat` of cgroup v1 on 5.4.286, two CPUs, 222 live cgroups.
fn on_5_4(story: Story) -> Story {
    let file = "memory.numa_stat";
    let story = timed(story, 1_000.0, file, 1_000, 7.6, 0.04);
    let story = timed(story, 2_000.0, file, 10_000, 124.0, 0.05);
    timed(story, 3_000.0, file, 65_000, 1_013.0, 0.4)
}

#[test]
fn on_5_4_it_is_proven() {
    assert_eq!(joined(&on_5_4(reader(WALK))), Some(Confidence::CERTAIN));
    // What walks is inlined into what shows.
    let inlined = "do_syscall_64;vfs_read;seq_read;memcg_numa_stat_show";
    assert_eq!(joined(&on_5_4(reader(inlined))), Some(Confidence::CERTAIN));
}

#[test]
fn on_6_18_it_is_refuted_and_the_evidence_shown() {
    let file = "memory.stat";
    let story = timed(reader(READ), 1_000.0, file, 100, 0.012, 0.011);
    let story = timed(story, 3_000.0, file, 2_000, 0.012, 0.011);
    let Meeting::Apart(evidence) = meeting(&story) else {
        panic!("they are not cause and effect here");
    };
    let against = evidence.iter().filter(|one| one.stance == Stance::Against);
    let against: Vec<&str> = against.map(|one| one.text.as_str()).collect();
    assert_eq!(against.len(), 3, "{against:?}");
    assert!(
        against[1].contains("12 us at the root, above 2,000"),
        "{against:?}"
    );
}

#[test]
fn many_live_cgroups_alone_do_not_prove_it() {
    // 222 live ones and none dying make 0.99 ms against 0.04 ms on 5.4.
    let story = timed(reader(WALK), 1_000.0, "memory.numa_stat", 0, 0.99, 0.04);
    assert_eq!(joined(&story), None);
    // A read that is slow and stays so however many are dying has another cause.
    let flat = timed(reader(WALK), 2_000.0, "memory.numa_stat", 1_000, 50.0, 0.04);
    let flat = timed(flat, 3_000.0, "memory.numa_stat", 9_000, 51.0, 0.04);
    assert_eq!(joined(&flat), None);
}

#[test]
fn a_walk_that_was_not_timed_is_likely_where_most_are_dying() {
    let quick_other_file = |story| timed(story, 1_000.0, "memory.stat", 68_440, 0.05, 0.04);
    let founding = counted(quick_other_file(reader(WALK)), 240.0, 68_440.0);
    assert_eq!(joined(&founding), Some(Confidence::LIKELY));
    let healthy = counted(quick_other_file(reader(WALK)), 240.0, 40.0);
    assert_eq!(joined(&healthy), None);
    // Nearly all that a walk from the root goes over are dying; of one from elsewhere that is
    // not known.
    let check = |open: &str, dying, expected| {
        let story = counted(reader_of(WALK, &[open]), 240.0, dying);
        assert_eq!(joined(&story), Some(expected), "{open} {dying}");
    };
    check("/memory.numa_stat", 68_440.0, Confidence::CERTAIN);
    check("/memory.numa_stat", 400.0, Confidence::LIKELY);
    check("/memory.stat", 68_440.0, Confidence::LIKELY);
    check("/kubepods/memory.numa_stat", 68_440.0, Confidence::LIKELY);
    // Neither timed nor seen to walk.
    assert_eq!(joined(&counted(reader(READ), 240.0, 68_440.0)), None);
}
