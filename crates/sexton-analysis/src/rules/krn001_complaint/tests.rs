use super::*;
use crate::testing::story::{Story, subject};

#[test]
fn a_soft_lockup_names_core_and_task() {
    let story = Story::default().line(
        100.0,
        &Subject::cpu(3),
        "soft_lockup",
        &[
            ("cpu", "3"),
            ("comm", "java"),
            ("pid", "991"),
            ("stuck_seconds", "22"),
        ],
    );
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id().as_str(), "KRN001:3");
    assert_eq!(found[0].severity, Severity::Serious);
    assert!(
        found[0]
            .title
            .contains("a soft lockup (java) on cpu 3 once"),
        "{}",
        found[0].title
    );
    assert!(found[0].touches(&subject(SubjectKind::Process, "991")));
    let length = found[0].episodes[0].to.since(found[0].episodes[0].from);
    assert_eq!(length.as_secs(), 22);
}

#[test]
fn small_complaints_are_notes_and_forged_ones_weak() {
    let hog = Story::default().line(100.0, &Subject::node(), "workqueue_hog", &[]);
    assert_eq!(hog.found_by(&RULE)[0].severity, Severity::Note);
    let forged = [("cpu", "3"), ("written_by", "userspace")];
    let forged = Story::default().line(100.0, &Subject::cpu(3), "hard_lockup", &forged);
    let found = forged.found_by(&RULE);
    assert_eq!(
        (found[0].severity, found[0].confidence),
        (Severity::Warning, Confidence::WEAK)
    );
}

#[test]
fn a_flood_of_complaints_stays_small() {
    let mut story = Story::default();
    for pid in 0..100 {
        let about = subject(SubjectKind::Process, &pid.to_string());
        story = story.line(100.0, &about, "workqueue_lockup", &[]);
    }
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), MAX_FINDINGS);
    let last = &found[MAX_FINDINGS - 1];
    assert!(
        last.evidence.iter().any(|one| one.text.contains("84 more")),
        "{last:?}"
    );
}

#[test]
fn tasks_that_hang_are_one_finding() {
    let mut story = Story::default();
    for (pid, again) in [("1", false), ("2", false), ("3", true)] {
        let about = subject(SubjectKind::Process, pid);
        let more = [("pid", pid), ("comm", "writer")];
        for _ in 0..=usize::from(again) {
            story = story.line(100.0, &about, "hung_task", &more);
        }
    }
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].figure, "3 tasks hung in D state");
    assert!(found[0].touches(&subject(SubjectKind::Process, "2")));
}

#[test]
fn other_lines_are_no_complaints() {
    let story = Story::default().line(100.0, &Subject::node(), "oom_kill", &[]);
    assert!(story.found_by(&RULE).is_empty());
}

#[test]
fn a_lockup_of_yesterday_is_not_what_the_kernel_reports_now() {
    let cpu = Subject::cpu(1);
    let story = |lockup: f64| {
        Story::default()
            .heard("klog", 90_000.0)
            .heard("klog", 90_030.0)
            .line(lockup, &cpu, "soft_lockup", &[("cpu", "1")])
            .line(90_027.0, &cpu, "softirq_pending", &[("cpu", "1")])
            .found_by(&RULE)
    };
    let old = story(3_600.0);
    assert_eq!(old[0].severity, Severity::Note);
    assert_eq!(
        old[0].title,
        "the kernel reported pending softirqs on an idle core on cpu 1 once, last 3.0 s before \
         the end of the watch"
    );
    assert_eq!(old[0].evidence[1].text, "soft_lockup");
    let new = story(90_010.0);
    assert_eq!(new[0].severity, Severity::Serious);
    assert!(
        new[0]
            .title
            .ends_with("a soft lockup on cpu 1 once, last 20 s before the end of the watch"),
        "{}",
        new[0].title
    );
}

#[test]
fn a_forged_lockup_does_not_borrow_the_trust_of_another_line() {
    let cpu = Subject::cpu(1);
    let forged = [("cpu", "1"), ("written_by", "userspace")];
    let found = Story::default()
        .heard("klog", 90_000.0)
        .line(90_010.0, &cpu, "soft_lockup", &forged)
        .line(90_027.0, &cpu, "softirq_pending", &[("cpu", "1")])
        .found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Note);
}
