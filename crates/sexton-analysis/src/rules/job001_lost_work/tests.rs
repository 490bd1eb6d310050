use super::*;
use crate::testing::story::{Story, subject};

fn reset(story: Story, seconds: f64) -> Story {
    let ens5 = subject(SubjectKind::Device, "ens5");
    story.line(seconds, &ens5, "nic_reset", &[("device", "ens5")])
}

fn died(story: Story, seconds: f64, comm: &str, more: &[(&'static str, &str)]) -> Story {
    let mut details = vec![("comm", comm), ("signal", "6")];
    details.extend(more);
    let about = subject(SubjectKind::Process, "9");
    story.event("exits", seconds, &about, &PROCESS_FAILED, &details)
}

const POD: [(&str, &str); 1] = [("container", "abc")];

fn check(story: Story, expected: &[&str]) {
    let found = story.found_by(&RULE);
    let ids: Vec<String> = found
        .iter()
        .map(|finding| finding.id().to_string())
        .collect();
    assert_eq!(ids, expected);
}

#[test]
fn what_dies_seconds_after_the_reset_was_lost() {
    let story = reset(Story::default(), 100.0);
    let story = died(story, 103.0, "trainer", &POD);
    let story = died(story, 104.0, "raylet", &[("role", "ray")]);
    let found = story.found_by(&RULE);
    assert!(
        found
            .iter()
            .all(|finding| finding.severity == Severity::Critical)
    );
    assert!(
        found[0].title.contains("trainer failed 3.0 s after ens5"),
        "{}",
        found[0].title
    );
    check(story, &["JOB001:abc", "JOB001:raylet"]);
}

#[test]
fn what_died_before_or_long_after_was_not() {
    let story = reset(died(Story::default(), 99.0, "trainer", &POD), 100.0);
    check(died(story, 131.0, "other", &POD), &[]);
}

#[test]
fn what_failed_all_the_time_was_not() {
    let story = died(Story::default(), 80.0, "agent", &POD);
    let story = died(story, 91.0, "agent", &POD);
    check(died(reset(story, 100.0), 102.0, "agent", &POD), &[]);
}

#[test]
fn want_of_memory_and_plain_processes_are_not_it() {
    let story = reset(Story::default(), 100.0);
    let story = died(
        story,
        102.0,
        "hungry",
        &[("container", "abc"), ("oom", "yes")],
    );
    check(died(story, 102.0, "sh", &[]), &[]);
}

#[test]
fn a_container_that_exits_badly_counts_by_its_image() {
    let abc = subject(SubjectKind::Container, "abc");
    let exited = |story: Story, seconds, code| {
        let details = [("name", "train-7"), ("image", "train"), ("exit_code", code)];
        story.event("containers", seconds, &abc, &CONTAINER_EXITED, &details)
    };
    check(
        exited(reset(Story::default(), 100.0), 101.0, "1"),
        &["JOB001:abc"],
    );
    check(exited(reset(Story::default(), 100.0), 101.0, "0"), &[]);
    let before = exited(Story::default(), 90.0, "1");
    check(exited(reset(before, 100.0), 101.0, "1"), &[]);
}

#[test]
fn without_exits_it_is_not_judged() {
    let told = reset(Story::default(), 100.0).told_by(&RULE);
    assert_eq!(told.not_judged.len(), 1);
}

#[test]
fn a_forged_line_costs_no_work() {
    let ens5 = subject(SubjectKind::Device, "ens5");
    let forged = [("device", "ens5"), ("written_by", "userspace")];
    let story = Story::default().line(100.0, &ens5, "nic_reset", &forged);
    let alone = died(story, 103.0, "ci", &POD).found_by(&RULE);
    assert_eq!(
        (alone[0].severity, alone[0].confidence),
        (Severity::Note, Confidence::WEAK)
    );
    // A real reset before it is what counts.
    let story = reset(Story::default(), 90.0).line(100.0, &ens5, "nic_reset", &forged);
    let both = died(story, 103.0, "ci", &POD).found_by(&RULE);
    assert_eq!(both[0].severity, Severity::Critical);
    assert!(
        both[0].title.contains("13 s after ens5"),
        "{}",
        both[0].title
    );
}
