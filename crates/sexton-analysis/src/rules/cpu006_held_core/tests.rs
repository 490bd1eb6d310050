use super::*;
use crate::testing::story::{Story, words};

/// Waits of a task for core 1, one each second, that `spin` (pid 90) had in this way.
fn held(
    mut story: Story,
    waiter: &str,
    n_waits: u32,
    ms: u64,
    more: &[(&'static str, &str)],
) -> Story {
    let waited = (ms * 1_000_000).to_string();
    for n in 0..n_waits {
        let mut says = vec![
            ("pid", "12"),
            ("comm", waiter),
            ("waited_ns", &*waited),
            ("holder_pid", "90"),
            ("holder_comm", "spin"),
            ("holder_ns", &*waited),
        ];
        says.retain(|(key, _)| !more.iter().any(|(other, _)| other == key));
        says.extend(more);
        let at = 12.0 + f64::from(n);
        story = story.event("runq", at, &Subject::cpu(1), &RUNQ_WAIT, &says);
    }
    story
}

/// Core 1 is used up by a program.
fn core() -> Story {
    Story::default().core(1, (10.0, 30.0), (0.02, 0.96))
}

const REALTIME: (&str, &str) = ("holder_realtime", "true");

fn severity(story: &Story) -> Option<Severity> {
    let found = story.found_by(&RULE);
    assert!(found.len() <= 1, "{found:?}");
    found.first().map(|finding| finding.severity)
}

#[test]
fn who_holds_the_core_and_who_waits_are_named() {
    let unit = ("holder_cgroup", "/system.slice/spin.service");
    let story = held(core(), "kworker/1:0", 8, 946, &[REALTIME, unit]);
    let story = held(story, "api", 3, 952, &[REALTIME, unit]);
    let found = story.found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id().to_string(), "CPU006:spin.service");
    assert_eq!(found[0].severity, Severity::Serious);
    assert_eq!(found[0].confidence, Confidence::CERTAIN);
    // It held the core between the waits as well.
    assert_eq!(found[0].episodes.len(), 1);
    let says = words(&found[0]);
    for part in [
        "spin (pid 90) of spin.service holds core 1 with real-time priority",
        "api waited 952 ms for it",
        "kworker/1:0 waited for the core 8 times, up to 946 ms",
    ] {
        assert!(says.contains(part), "{part:?} is not in {says}");
    }
}

#[test]
fn pinned_tasks_alone_are_a_warning() {
    let story = held(core(), "api", 3, 950, &[REALTIME]);
    assert_eq!(severity(&story), Some(Severity::Warning));
    let story = held(core(), "api", 1, 2_100, &[REALTIME]);
    assert_eq!(severity(&story), Some(Severity::Serious));
    assert_eq!(severity(&held(core(), "api", 2, 950, &[REALTIME])), None);
}

#[test]
fn ordinary_tasks_that_take_turns_are_innocent() {
    let check = |more: &[(&'static str, &str)]| {
        assert_eq!(
            severity(&held(core(), "api", 9, 950, more)),
            None,
            "{more:?}"
        );
    };
    check(&[("holder_realtime", "false")]);
    // It had the core for less than the wait: others had it too.
    check(&[REALTIME, ("holder_ns", "500000000")]);
    // Who is niced stands back.
    check(&[REALTIME, ("nice", "10")]);
    // Nothing was held: the core was idle or ran the kernel's own threads.
    check(&[REALTIME, ("holder_comm", "migration/1")]);
    check(&[REALTIME, ("holder_pid", "0")]);
    assert_eq!(severity(&held(core(), "api", 9, 400, &[REALTIME])), None);
}

#[test]
fn of_an_older_recording_threads_of_the_kernel_tell() {
    let story = held(core(), "ksoftirqd/1", 3, 950, &[]);
    let found = story.found_by(&RULE);
    assert_eq!(found[0].confidence, Confidence::LIKELY);
    assert_eq!(severity(&held(core(), "api", 9, 950, &[])), None);
}

#[test]
fn a_core_that_the_kernel_holds_is_told_elsewhere() {
    let story = Story::default().core(1, (10.0, 30.0), (0.96, 0.02));
    assert_eq!(
        severity(&held(story, "kworker/1:0", 8, 950, &[REALTIME])),
        None
    );
}

#[test]
fn what_a_quota_holds_back_does_not_wait_for_the_core() {
    use sexton_model::fact::pressure::CPU_THROTTLED_RATIO;
    let quota = Subject::new(SubjectKind::Cgroup, "/system.slice/api.service");
    let story = core().sample("pressure", 20.0, &quota, &CPU_THROTTLED_RATIO, 0.9);
    let inside = ("cgroup", "/system.slice/api.service");
    assert_eq!(
        severity(&held(story, "api", 9, 950, &[REALTIME, inside])),
        None
    );
}

#[test]
fn means_of_waits_tell_nothing_of_one() {
    use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
    let runq = Subject::new(SubjectKind::Sensor, "runq");
    let says = [
        ("what", "waits for a core"),
        ("by", "means of /proc/schedstat"),
    ];
    let means = |story: Story| story.event("runq", 10.0, &runq, &SEXTON_STEP_DOWN, &says);
    assert_eq!(means(core()).told_by(&RULE).not_judged.len(), 1);
    // BPF came later.
    let both = means(held(core(), "kworker/1:0", 8, 946, &[REALTIME]));
    assert_eq!(severity(&both), Some(Severity::Serious));
}
