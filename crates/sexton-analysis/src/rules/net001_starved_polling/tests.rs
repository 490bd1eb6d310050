use sexton_model::fact::EventFact;

use super::*;
use crate::testing::story::{Story, subject, words};

fn told(
    story: Story,
    fact: &'static EventFact<NapiDelay>,
    seconds: f64,
    what: &str,
    waited_ns: &str,
) -> Story {
    let details = [
        ("what", what),
        ("waited_ns", waited_ns),
        ("holder_pid", "77"),
        ("holder_comm", "reader"),
        ("stack", "do_syscall_64;vfs_read;memory_stat_show"),
    ];
    story.event("napi", seconds, &Subject::cpu(1), fact, &details)
}

#[test]
fn a_thread_that_polls_and_waits_is_named_with_device_and_holder() {
    let story = told(
        Story::default(),
        &NAPI_STARVED,
        20.0,
        "napi/ens5-8193",
        "600000000",
    );
    let story = told(story, &NAPI_SERVED, 23.4, "napi/ens5-8193", "4000000000");
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    let finding = &found[0];
    assert_eq!(finding.id().as_str(), "NET001:1");
    assert_eq!(finding.severity, Severity::Serious);
    assert_eq!(finding.episodes.len(), 1, "one wait told twice");
    for expected in ["polling of ens5 was", "4.0 s", "core 1", "reader (pid 77)"] {
        assert!(finding.title.contains(expected), "{}", finding.title);
    }
    for (kind, name) in [
        (SubjectKind::Device, "ens5"),
        (SubjectKind::Queue, "ens5/napi-8193"),
        (SubjectKind::Process, "77"),
    ] {
        assert!(finding.touches(&subject(kind, name)), "{name}");
    }
    assert!(
        words(finding).contains("memory_stat_show"),
        "{}",
        words(finding)
    );
}

#[test]
fn an_interrupt_leads_from_the_core_to_device_and_queue() {
    let story = told(Story::default(), &NAPI_STARVED, 20.0, "net_rx", "600000000");
    let story = story
        .event(
            "nics",
            1.0,
            &subject(SubjectKind::Device, "ens5"),
            &NIC_INTERRUPT,
            &[
                ("irq", "33"),
                ("name", "ens5-Tx-Rx-5"),
                ("effective_cpus", "0-1"),
            ],
        )
        .event(
            "nics",
            1.0,
            &subject(SubjectKind::Device, "ens6"),
            &NIC_INTERRUPT,
            &[
                ("irq", "34"),
                ("name", "ens6-Tx-Rx-0"),
                ("effective_cpus", "2,4-7"),
            ],
        );
    let found = story.found_by(&RULE);
    assert!(found[0].touches(&subject(SubjectKind::Device, "ens5")));
    assert!(found[0].touches(&subject(SubjectKind::Queue, "ens5/tx-5")));
    assert!(!found[0].touches(&subject(SubjectKind::Device, "ens6")));
    assert_eq!(found[0].severity, Severity::Warning);
}

#[test]
fn polling_that_runs_is_not_starved() {
    let story = Story::default().heard("napi", 1.0);
    assert!(story.found_by(&RULE).is_empty());
    let told = Story::default().heard("cores", 1.0).told_by(&RULE);
    assert_eq!(told.not_judged.len(), 1);
}

#[test]
fn what_waits_for_sexton_itself_is_no_finding() {
    let held = |more: &[(&'static str, &str)]| {
        let mut details = vec![
            ("what", "napi/ens5-8193"),
            ("waited_ns", "900000000"),
            ("holder_pid", "77"),
            ("holder_comm", "numa_stat"),
        ];
        details.extend(more);
        Story::default().event("napi", 20.0, &Subject::cpu(1), &NAPI_STARVED, &details)
    };
    assert!(
        held(&[("holder_own", "yes")])
            .heard("napi", 1.0)
            .found_by(&RULE)
            .is_empty()
    );
    assert_eq!(held(&[]).found_by(&RULE).len(), 1);
}

/// Polling that waited two seconds, and who had the core this long of it.
fn held_for(holder_ns: &str) -> Finding {
    let details = [
        ("what", "ksoftirqd/1"),
        ("waited_ns", "2000000000"),
        ("holder_pid", "77"),
        ("holder_comm", "ld-linux"),
        ("holder_ns", holder_ns),
    ];
    let story = Story::default()
        .sample("cores", 19.0, &Subject::node(), &RUNNABLE_TASKS, 23.0)
        .sample("cores", 20.0, &Subject::node(), &RUNNABLE_TASKS, 25.0)
        .event("napi", 20.0, &Subject::cpu(1), &NAPI_SERVED, &details);
    story.found_by(&RULE).remove(0)
}

#[test]
fn a_task_that_only_had_its_turn_is_not_accused() {
    let shared = held_for("40000000");
    assert!(!words(&shared).contains("ld-linux"), "{}", words(&shared));
    assert!(
        shared.title.contains("no one task had the core, 24 tasks"),
        "{}",
        shared.title
    );
    assert!(!shared.touches(&subject(SubjectKind::Process, "77")));
    let held = held_for("1900000000");
    assert!(
        held.title.contains("which ld-linux (pid 77) occupied"),
        "{}",
        held.title
    );
    assert!(held.touches(&subject(SubjectKind::Process, "77")));
}
