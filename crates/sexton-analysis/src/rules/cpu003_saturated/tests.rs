use sexton_model::fact::pressure::CPU_TASK;
use sexton_model::fact::runq::RUNQ_WAIT;
use sexton_model::fact::stack::CPU_USE;

use super::*;
use crate::testing::story::{Story, subject, words};

/// Two cores from 10 s to 30 s, with this much of each in programs.
fn cores(user: f64) -> Story {
    Story::default()
        .core(0, (10.0, 30.0), (0.05, user))
        .core(1, (10.0, 30.0), (0.05, user))
}

/// What processes of a name in a unit had, in cores.
fn having(story: Story, unit: &str, comm: &str, cores: &str) -> Story {
    let cgroup = format!("/system.slice/{unit}");
    let says = [
        ("comm", comm),
        ("cgroup", &*cgroup),
        ("n_processes", "8"),
        ("cores", cores),
        ("kernel_cores", "0"),
        ("interval_ns", "10000000000"),
    ];
    let story = story.event(
        "stacks",
        20.0,
        &subject(SubjectKind::Task, comm),
        &CPU_USE,
        &says,
    );
    story.event(
        "stacks",
        30.0,
        &subject(SubjectKind::Task, comm),
        &CPU_USE,
        &says,
    )
}

/// A process that waited this many milliseconds of each five seconds.
fn waiting(mut story: Story, pid: &str, unit: &str, comm: &str, ms: u64, nice: &str) -> Story {
    let cgroup = format!("/system.slice/{unit}");
    let waited = (ms * 1_000_000).to_string();
    for at in [15.0, 20.0, 25.0, 30.0] {
        let says = [
            ("comm", comm),
            ("cgroup", &*cgroup),
            ("nice", nice),
            ("ran_ns", "100000000"),
            ("waited_ns", &*waited),
            ("interval_ns", "5000000000"),
        ];
        let process = subject(SubjectKind::Process, pid);
        story = story.event("pressure", at, &process, &CPU_TASK, &says);
    }
    story
}

fn severity(story: &Story) -> Option<Severity> {
    let found = story.found_by(&RULE);
    found.first().map(|finding| finding.severity)
}

#[test]
fn a_hog_that_others_wait_for_is_named_with_who_suffers() {
    let story = having(cores(0.94), "hog.service", "hog", "1.95");
    let story = waiting(story, "7", "api.service", "api", 3_000, "0");
    let story = waiting(story, "8", "hog.service", "hog", 4_000, "0");
    let found = story.found_by(&RULE);
    assert_eq!(found[0].id().as_str(), "CPU003:hog.service");
    assert_eq!(found[0].severity, Severity::Warning);
    let said = words(&found[0]);
    assert!(
        said.contains("hog.service has 98 % of all 2 cores; api waited for a core 60 %"),
        "{said}"
    );
    assert!(said.contains("0.60 tasks of others waited"), "{said}");
    let worse = waiting(story, "9", "db.service", "db", 4_000, "0");
    assert_eq!(severity(&worse), Some(Severity::Serious));
}

#[test]
fn a_build_host_whose_own_work_waits_is_a_note() {
    let build = having(cores(0.94), "build.service", "cc1", "1.9");
    let build = waiting(build, "7", "build.service", "cc1", 4_500, "0");
    let build = waiting(build, "8", "build.service", "make", 2_000, "0");
    // Daemons beside it, batch work, and threads of the kernel that work for it.
    let build = waiting(build, "9", "cron.service", "cron", 100, "0");
    let build = waiting(build, "10", "backup.service", "gzip", 4_900, "19");
    let build = waiting(build, "11", "", "kworker/u4:1", 2_000, "0");
    let found = build.found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Note, "{}", words(&found[0]));
    assert_eq!(found[0].id().as_str(), "CPU003:build.service");
}

#[test]
fn a_long_queue_of_one_owner_is_its_own_matter() {
    let story = having(cores(0.94), "build.service", "cc1", "1.95");
    let mut story = waiting(story, "8", "build.service", "cc1", 4_000, "0");
    for second in 10..30 {
        let at = f64::from(second);
        story = story.sample("cores", at, &Subject::node(), &RUNNABLE_TASKS, 12.0);
    }
    assert_eq!(severity(&story), Some(Severity::Note));
}

/// Four busy loops on two cores, for as long as one looks.
#[test]
fn more_busy_loops_than_cores_are_a_trouble_though_only_they_wait() {
    let loops = |pids: &[&str]| {
        let story = having(cores(0.94), "hog.service", "hog", "1.95");
        let pids = pids.iter();
        pids.fold(story, |story, pid| {
            waiting(story, pid, "hog.service", "hog", 4_900, "0")
        })
    };
    assert_eq!(severity(&loops(&["1", "2", "3"])), Some(Severity::Note));
    let found = loops(&["1", "2", "3", "4"]).found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Warning, "{}", words(&found[0]));
    assert_eq!(
        found[0].title,
        "hog.service has 98 % of all 2 cores; 4 of its tasks never sleep and share them"
    );
}

/// So many units with a task each, which have this much of a core and wait the rest.
fn crowd(units: &[&str], had: &str, waited_ms: u64) -> Story {
    let numbered = units.iter().zip(["1", "2", "3", "4", "5", "6", "7", "8"]);
    numbered.fold(cores(0.94), |story, (unit, pid)| {
        let story = having(story, unit, "job", had);
        waiting(story, pid, unit, "job", waited_ms, "0")
    })
}

#[test]
fn many_that_share_suffer_when_each_would_be_much_faster_alone() {
    let units = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| format!("{name}.service"));
    let units: Vec<&str> = units.iter().map(String::as_str).collect();
    let two_for_a_core = crowd(&units[..4], "0.49", 2_500);
    assert_eq!(severity(&two_for_a_core), Some(Severity::Note));
    // Long queues of their own do not make two builds slower than half.
    let mut builds = crowd(&units[..2], "0.98", 4_000);
    for pid in ["11", "12", "13", "14", "15", "16"] {
        builds = waiting(builds, pid, units[0], "job", 4_000, "0");
    }
    assert_eq!(severity(&builds), Some(Severity::Note));
    let found = crowd(&units, "0.245", 3_750).found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Warning, "{}", words(&found[0]));
    assert_eq!(found[0].id().as_str(), "CPU003:node");
    assert!(
        found[0]
            .title
            .contains("each is 4.0 times slower than it would be alone"),
        "{}",
        found[0].title
    );
}

#[test]
fn who_has_little_suffers_from_two_as_from_one() {
    let two = crowd(&["a.service", "b.service"], "0.8", 2_000);
    assert_eq!(severity(&two), Some(Severity::Note));
    let two = having(two, "api.service", "api", "0.3");
    let two = waiting(two, "9", "api.service", "api", 3_000, "0");
    let found = two.found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Warning, "{}", words(&found[0]));
    assert!(found[0].title.contains("api waited for a core 60 %"));
}

#[test]
fn a_node_with_room_is_not_saturated() {
    let story = waiting(cores(0.7), "7", "api.service", "api", 3_000, "0");
    assert_eq!(severity(&story), None);
    // Niced work has all cores, and gives them to any other.
    let mut niced = Story::default();
    for cpu in [0, 1] {
        niced = niced.core(cpu, (10.0, 30.0), (0.05, 0.1));
    }
    assert_eq!(severity(&niced), None);
}

#[test]
fn what_a_quota_holds_back_does_not_wait_for_the_hog() {
    use sexton_model::fact::pressure::CPU_THROTTLED_RATIO;
    let story = having(cores(0.94), "hog.service", "hog", "1.95");
    let story = waiting(story, "7", "api.service", "api", 4_000, "0");
    let quota = subject(SubjectKind::Cgroup, "/system.slice/api.service");
    let story = story.sample("pressure", 20.0, &quota, &CPU_THROTTLED_RATIO, 0.9);
    assert_eq!(severity(&story), Some(Severity::Note));
}

#[test]
fn a_wait_of_seconds_is_told_of_any_task() {
    let long = |comm: &str| {
        let story = having(cores(0.94), "hog.service", "hog", "1.95");
        let story = waiting(story, "8", "hog.service", "hog", 4_000, "0");
        let says = [("pid", "12"), ("comm", comm), ("waited_ns", "10700000000")];
        story.event("runq", 25.0, &Subject::cpu(0), &RUNQ_WAIT, &says)
    };
    let other = long("sshd").found_by(&RULE);
    assert_eq!(other[0].severity, Severity::Serious);
    assert!(
        other[0].title.contains("sshd waited 11 s for a core"),
        "{}",
        other[0].title
    );
    assert_eq!(severity(&long("hog")), Some(Severity::Warning));
}

#[test]
fn what_could_not_be_seen_is_said() {
    let told = cores(0.94).told_by(&RULE);
    assert_eq!(told.not_judged.len(), 1);
    let told = Story::default().heard("klog", 1.0).told_by(&RULE);
    assert_eq!(told.not_judged.len(), 1);
    // Idle cores need no more.
    assert!(cores(0.1).found_by(&RULE).is_empty());
}
