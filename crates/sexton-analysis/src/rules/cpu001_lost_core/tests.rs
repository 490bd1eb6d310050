use std::collections::BTreeSet;

use sexton_model::fact::core::CORE_OWN_RATIO;
use sexton_model::fact::stack::PROCESS_ON_CORE;
use sexton_model::subject::SubjectKind;

use super::*;
use crate::testing::story::{Story, at, subject, words};

#[test]
fn a_core_in_the_kernel_for_seconds_is_lost() {
    let story = Story::default()
        .core(0, (10.0, 30.0), (0.02, 0.05))
        .core(1, (10.0, 14.0), (0.02, 0.05))
        .core(1, (14.1, 19.0), (0.97, 0.01))
        .core(1, (19.1, 30.0), (0.02, 0.05));
    let found = story.found_by(&RULE);
    let [finding] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(finding.id().as_str(), "CPU001:1");
    assert_eq!(finding.severity, Severity::Serious);
    assert_eq!(finding.confidence, Confidence::CERTAIN);
    assert_eq!(finding.episodes.len(), 1);
    assert!(
        words(finding).contains("5.0 s without a break"),
        "{}",
        words(finding)
    );
    assert!(
        words(finding).contains("average over all 2 cores"),
        "{}",
        words(finding)
    );
}

#[test]
fn a_tick_that_falls_short_does_not_end_a_stretch() {
    let story = Story::default()
        .core(3, (10.0, 11.5), (0.99, 0.0))
        .core(3, (11.6, 11.6), (0.6, 0.2))
        .core(3, (11.7, 13.0), (0.99, 0.0));
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Warning);
    assert_eq!(found[0].episodes.len(), 1);
}

#[test]
fn user_load_turns_and_bursts_are_not_it() {
    let busy = Story::default().core(0, (10.0, 30.0), (0.15, 0.84));
    assert!(busy.found_by(&RULE).is_empty());
    let mut turns = Story::default();
    for second in 0..20 {
        let from = 10.0 + f64::from(second);
        let (hot, cold) = (second % 2, 1 - second % 2);
        turns = turns.core(hot, (from, from + 0.9), (0.95, 0.0)).core(
            cold,
            (from, from + 0.9),
            (0.05, 0.0),
        );
    }
    assert!(turns.found_by(&RULE).is_empty());
}

/// A core that is lost from 10 s to 19 s, of which a process had this part.
fn lost_to(own: &[(&'static str, &'static str)]) -> Vec<Finding> {
    let mut details = vec![
        ("comm", "sexton"),
        ("cpu", "1"),
        ("interval_ns", "10000000000"),
        ("kernel_ratio", "0.5"),
    ];
    details.extend(own);
    let story = Story::default().core(1, (10.0, 19.0), (0.97, 0.01)).event(
        "stacks",
        20.0,
        &subject(SubjectKind::Process, "4711"),
        &PROCESS_ON_CORE,
        &details,
    );
    story.found_by(&RULE)
}

#[test]
fn a_core_that_sexton_itself_had_is_a_note() {
    let found = lost_to(&[("own", "yes")]);
    assert_eq!(found[0].severity, Severity::Note);
    let words = words(&found[0]);
    assert!(words.contains("was sexton's own work"), "{words}");
    // One that only bears its name is accused like any other.
    assert_eq!(lost_to(&[])[0].severity, Severity::Serious);
}

/// A core in the kernel from 10 s to 19 s, of which sexton had this part from 11 s on.
fn with_own(own: f64) -> Story {
    let mut story = Story::default().core(1, (10.0, 19.0), (0.97, 0.01));
    let told: BTreeSet<Moment> = story.records().iter().map(|record| record.at).collect();
    let core = Subject::cpu(1);
    for told in told.into_iter().filter(|told| *told > at(11.0)) {
        let seconds = told.as_ns() as f64 / 1e9;
        story = story.sample("cores", seconds, &core, &CORE_OWN_RATIO, own);
    }
    story
}

#[test]
fn the_kernels_work_for_sexton_is_no_finding() {
    assert!(with_own(0.95).found_by(&RULE).is_empty());
    assert!(with_own(0.6).found_by(&RULE).is_empty());
    // Another had the rest of the core, all of it in the kernel.
    let shared = with_own(0.2).found_by(&RULE);
    assert_eq!(shared[0].severity, Severity::Serious);
}

#[test]
fn what_ran_there_is_named() {
    let story = Story::default().core(1, (10.0, 19.0), (0.97, 0.01)).event(
        "stacks",
        15.0,
        &subject(SubjectKind::Process, "4711"),
        &PROCESS_ON_CORE,
        &[
            ("comm", "dd"),
            ("cpu", "1"),
            ("kernel_ratio", "0.96"),
            ("hot_stack", "do_syscall_64;vfs_read;read_zero"),
        ],
    );
    let found = story.found_by(&RULE);
    assert!(found[0].touches(&subject(SubjectKind::Process, "4711")));
    let words = words(&found[0]);
    assert!(words.contains("dd (pid 4711) had 96 %"), "{words}");
    assert!(words.contains("read_zero"), "{words}");
}

/// A core that is lost from 10 s to 19 s, and processes that had these parts of it.
fn shared_by(parts: &[(&str, &str)]) -> Finding {
    let mut story = Story::default().core(1, (10.0, 19.0), (0.97, 0.01));
    for (pid, part) in parts {
        let details = [
            ("comm", "maker"),
            ("cpu", "1"),
            ("interval_ns", "10000000000"),
            ("kernel_ratio", *part),
            ("cgroup", "/system.slice/maker.service"),
            (
                "hot_stack",
                "do_syscall_64;cgroup_mkdir;cgroup_apply_control_enable",
            ),
        ];
        let process = subject(SubjectKind::Process, pid);
        story = story.event("stacks", 20.0, &process, &PROCESS_ON_CORE, &details);
    }
    story.found_by(&RULE).remove(0)
}

#[test]
fn who_really_had_the_core_is_in_the_title_with_its_unit() {
    let finding = shared_by(&[("77", "0.8"), ("78", "0.1")]);
    assert!(
        finding.title.contains("by maker (pid 77), mostly in "),
        "{}",
        finding.title
    );
    assert!(finding.touches(&subject(SubjectKind::Unit, "maker.service")));
}

#[test]
fn one_that_had_its_turn_is_not_accused() {
    let finding = shared_by(&[("77", "0.3"), ("78", "0.3"), ("79", "0.2")]);
    assert!(!finding.title.contains("maker"), "{}", finding.title);
    assert!(!finding.touches(&subject(SubjectKind::Unit, "maker.service")));
    let words = words(&finding);
    assert!(words.contains("they took turns"), "{words}");
    assert!(words.contains("maker (pid 79) had 20 %"), "{words}");
}

/// A process that moved from core to core is seen on each of them.
#[test]
fn it_is_seen_on_every_core_it_had() {
    use sexton_model::fact::stack::{CoreShare, ProcessOnCore};
    let says = ProcessOnCore {
        comm: Some("maker".into()),
        cpu: Some(0),
        kernel_ratio: Some(0.7),
        interval_ns: Some(10_000_000_000),
        cores: vec![CoreShare {
            cpu: 1,
            kernel_ratio: 0.6,
        }],
        ..ProcessOnCore::default()
    };
    let process = subject(SubjectKind::Process, "77");
    let story = Story::default().core(1, (10.0, 19.0), (0.97, 0.01)).says(
        "stacks",
        20.0,
        &process,
        &PROCESS_ON_CORE,
        says,
    );
    let found = story.found_by(&RULE);
    assert!(
        found[0].title.contains("by maker (pid 77)"),
        "{}",
        found[0].title
    );
}

#[test]
fn without_cores_it_is_not_judged() {
    let told = Story::default().heard("klog", 1.0).told_by(&RULE);
    assert_eq!(told.not_judged.len(), 1);
    let once = Story::default()
        .core(0, (10.0, 10.0), (0.9, 0.0))
        .told_by(&RULE);
    assert_eq!(once.not_judged.len(), 1);
}

/// `dd` from /dev/zero: the kernel has the core for 9 s, and what wakes there gets it.
fn busy() -> Story {
    use sexton_model::fact::runq::RUNQ_DELAY_MAX_NS;
    let mut story = Story::default().core(1, (10.0, 19.0), (0.97, 0.01));
    for second in 10..21 {
        let at = f64::from(second) + 0.5;
        story = story.sample("runq", at, &Subject::cpu(1), &RUNQ_DELAY_MAX_NS, 3e6);
    }
    story
}

fn severity_of(story: &Story) -> Severity {
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    found[0].severity
}

#[test]
fn a_core_that_whatever_wakes_there_gets_is_busy_and_not_lost() {
    let found = busy().found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Note);
    let said = words(&found[0]);
    for part in [
        "nothing waited long for it",
        "the longest wait for it was 3 ms",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn a_busy_core_that_anything_waits_for_is_lost() {
    use sexton_model::fact::napi::NAPI_STARVED;
    use sexton_model::fact::runq::{RUNQ_DELAY_MAX_NS, RUNQ_WAIT};
    let core = Subject::cpu(1);
    let waited = [
        ("pid", "12"),
        ("comm", "kworker/1:0"),
        ("waited_ns", "150000000"),
    ];
    let task = busy().event("runq", 15.0, &core, &RUNQ_WAIT, &waited);
    assert_eq!(severity_of(&task), Severity::Serious);
    // Of another core it means nothing.
    let other = busy().event("runq", 15.0, &Subject::cpu(0), &RUNQ_WAIT, &waited);
    assert_eq!(severity_of(&other), Severity::Note);
    let starved = [("what", "napi/ens5-8193"), ("waited_ns", "900000000")];
    let polling = busy().event("napi", 15.0, &core, &NAPI_STARVED, &starved);
    assert_eq!(severity_of(&polling), Severity::Serious);
    let lines = busy().line(18.0, &core, "workqueue_hog", &[("cpu", "1")]);
    assert_eq!(severity_of(&lines), Severity::Serious);
    let long = busy().sample("runq", 15.6, &core, &RUNQ_DELAY_MAX_NS, 2e8);
    assert_eq!(severity_of(&long), Severity::Serious);
}

#[test]
fn a_busy_core_of_which_nothing_tells_that_others_got_it_is_lost() {
    use sexton_model::fact::runq::RUNQ_DELAY_MAX_NS;
    let silent = Story::default().core(1, (10.0, 19.0), (0.97, 0.01));
    assert_eq!(severity_of(&silent), Severity::Serious);
    // It gave no task a turn for the first half.
    let late = silent.sample("runq", 16.0, &Subject::cpu(1), &RUNQ_DELAY_MAX_NS, 3e6);
    assert_eq!(severity_of(&late), Severity::Serious);
    // Interrupts have a part of it, which no task gets from them.
    let core = Subject::cpu(1);
    let interrupts = (100..200).fold(Story::default(), |story, tenth| {
        let seconds = f64::from(tenth) / 10.0;
        let story = story.sample("cores", seconds, &core, &CORE_SYSTEM_RATIO, 0.5);
        let story = story.sample("cores", seconds, &core, &CORE_SOFTIRQ_RATIO, 0.47);
        story.sample("runq", seconds, &core, &RUNQ_DELAY_MAX_NS, 3e6)
    });
    assert_eq!(severity_of(&interrupts), Severity::Serious);
}

/// A reader of memory statistics is CPU002's, whatever waits.
#[test]
fn a_core_on_which_memory_cgroups_are_walked_is_lost() {
    let story = busy().event(
        "stacks",
        18.0,
        &subject(SubjectKind::Process, "4711"),
        &PROCESS_ON_CORE,
        &[
            ("comm", "kubelet"),
            ("cpu", "1"),
            ("interval_ns", "10000000000"),
            ("kernel_ratio", "0.96"),
            ("hot_share", "0.9"),
            ("hot_stack", "do_syscall_64;seq_read;memcg_numa_stat_show"),
        ],
    );
    assert_eq!(severity_of(&story), Severity::Serious);
}
