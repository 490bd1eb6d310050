use sexton_model::fact::pressure::{CPU_OWNER, CPU_TASK, CpuOwner, Endless};
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

/// This number of cores, all in programs, from 10 s to 30 s.
fn full_cores(n: u32) -> Story {
    let cores = 0..n;
    cores.fold(Story::default(), |story, cpu| {
        story.core(cpu, (10.0, 30.0), (0.05, 0.94))
    })
}

/// What the looks at all processes say of a unit: how many cores it had, how many tasks of it
/// waited at any time, and how many never slept.
fn owner(mut story: Story, unit: &str, (cores, waiting): (f64, f64), n_endless: u64) -> Story {
    let cgroup = format!("/system.slice/{unit}");
    for (look, at) in [15.0, 20.0, 25.0, 30.0].into_iter().enumerate() {
        let for_ns = 5_000_000_000 * (look as u64 + 1);
        let says = CpuOwner {
            comm: unit.strip_suffix(".service").map(str::to_owned),
            cgroup: Some(cgroup.clone()),
            unit: Some(unit.to_owned()),
            n_processes: 1,
            ran_ns: (cores * 5e9) as u64,
            waited_ns: (waiting * 5e9) as u64,
            endless: vec![Endless {
                n: n_endless,
                for_ns,
            }],
            interval_ns: 5_000_000_000,
            ..CpuOwner::default()
        };
        let about = subject(SubjectKind::Cgroup, &cgroup);
        story = story.says("contention", at, &about, &CPU_OWNER, says);
    }
    story
}

/// Twelve of the loops of a hog, which take all places of those that wait most.
fn loops(story: Story) -> Story {
    let pids: Vec<String> = (100..112).map(|pid| pid.to_string()).collect();
    pids.iter().fold(story, |story, pid| {
        waiting(story, pid, "hog.service", "hog", 3_300, "0")
    })
}

/// Three busy loops for each core, and a service that waits 40 % of the time.
#[test]
fn a_victim_of_many_loops_is_seen_however_many_cores_there_are() {
    for n in [2, 4, 16, 96] {
        let all = f64::from(n);
        let story = loops(full_cores(n));
        let story = owner(
            story,
            "hog.service",
            (all * 0.97, all * 2.0),
            3 * u64::from(n),
        );
        let alone = owner(story, "idle.service", (0.01, 0.02), 0);
        let found = alone.found_by(&RULE);
        assert_eq!(found[0].severity, Severity::Warning, "{n} cores");
        let never = format!("{} of its tasks never sleep", 3 * n);
        assert!(found[0].title.contains(&never), "{}", found[0].title);
        let story = owner(alone, "api.service", (0.2, 0.4), 0);
        let story = waiting(story, "7", "api.service", "api", 2_000, "0");
        let found = story.found_by(&RULE);
        assert_eq!(found[0].id().as_str(), "CPU003:hog.service");
        assert_eq!(found[0].severity, Severity::Warning, "{n} cores");
        let said = words(&found[0]);
        assert!(
            said.contains("api waited for a core 40 % of the time"),
            "{said}"
        );
        assert!(said.contains("0.40 tasks of others waited"), "{said}");
        let worse = owner(story, "db.service", (0.1, 0.8), 0);
        assert_eq!(severity(&worse), Some(Severity::Serious), "{n} cores");
    }
}

/// A build of many jobs, with a daemon for each core that loses a fiftieth of one.
#[test]
fn a_build_beside_many_daemons_is_a_note_however_many_cores_there_are() {
    for n in [2, 4, 16, 96_u32] {
        let all = f64::from(n);
        let story = full_cores(n);
        let story = owner(
            story,
            "build.service",
            (all * 0.97, all * 3.0),
            u64::from(n),
        );
        let story = (0..n).fold(story, |story, daemon| {
            owner(story, &format!("d{daemon}.service"), (0.01, 0.02), 0)
        });
        let found = story.found_by(&RULE);
        assert_eq!(
            found[0].severity,
            Severity::Note,
            "{n} cores: {}",
            words(&found[0])
        );
        // Daemons that found no place of their own are summed up.
        let says = CpuOwner {
            n_owners: Some(100),
            waited_ns: 5_000_000_000,
            interval_ns: 5_000_000_000,
            ..CpuOwner::default()
        };
        let story = story.says("contention", 30.0, &Subject::node(), &CPU_OWNER, says);
        assert_eq!(severity(&story), Some(Severity::Note), "{n} cores");
    }
}

/// Jobs of a minute each: in each interval most do not sleep, and none does so for good.
#[test]
fn long_jobs_that_come_and_go_are_no_endless_queue() {
    let cgroup = "/system.slice/build.service";
    let mut story = full_cores(16);
    for at in [15.0, 20.0, 25.0, 30.0] {
        let some = |n, seconds: u64| Endless {
            n,
            for_ns: seconds * 1_000_000_000,
        };
        let says = CpuOwner {
            comm: Some("cc1plus".into()),
            cgroup: Some(cgroup.into()),
            n_processes: 64,
            ran_ns: 78_000_000_000,
            waited_ns: 230_000_000_000,
            endless: vec![some(20, 15), some(20, 10), some(20, 5)],
            interval_ns: 5_000_000_000,
            ..CpuOwner::default()
        };
        let about = subject(SubjectKind::Cgroup, cgroup);
        story = story.says("contention", at, &about, &CPU_OWNER, says);
    }
    assert_eq!(severity(&story), Some(Severity::Note));
}

#[test]
fn what_a_look_had_no_time_for_is_said() {
    let says = CpuOwner {
        comm: Some("hog".into()),
        cgroup: Some("/system.slice/hog.service".into()),
        ran_ns: 9_700_000_000,
        interval_ns: 5_000_000_000,
        n_unread: Some(90_000),
        ..CpuOwner::default()
    };
    let about = subject(SubjectKind::Cgroup, "/system.slice/hog.service");
    let story = cores(0.94).says("contention", 20.0, &about, &CPU_OWNER, says);
    let found = story.found_by(&RULE);
    assert_eq!(found[0].confidence, Confidence::LIKELY);
    let said = words(&found[0]);
    assert!(
        said.contains("missing: what 90,000 more processes waited"),
        "{said}"
    );
}

/// Four cores, of which eight loops of a unit and a service may use two.
fn pinned(story: Story) -> Story {
    use sexton_model::fact::pressure::PRESSURE_CPU_SOME_RATIO;
    let mut story = story
        .core(2, (10.0, 30.0), (0.01, 0.02))
        .core(3, (10.0, 30.0), (0.01, 0.02));
    for second in 10..=30 {
        let at = f64::from(second);
        let node = Subject::node();
        story = story.sample("pressure", at, &node, &PRESSURE_CPU_SOME_RATIO, 0.99);
    }
    let story = owner(story, "hog.service", (1.9, 6.0), 8);
    let story = owner(story, "api.service", (0.1, 0.6), 0);
    waiting(story, "7", "api.service", "api", 3_000, "0")
}

#[test]
fn cores_that_are_full_while_others_are_idle_are_named() {
    use sexton_model::fact::runq::RUNQ_DELAY_MAX_NS;
    let found = pinned(cores(0.94)).found_by(&RULE);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id().as_str(), "CPU003:hog.service");
    assert_eq!(found[0].severity, Severity::Warning);
    let said = words(&found[0]);
    assert!(
        said.contains("hog.service has 95 % of cores 0, 1; api waited"),
        "{said}"
    );
    assert!(
        said.contains("3 % of the other cores") || said.contains("4 % of the other"),
        "{said}"
    );
    assert!(found[0].touches(&Subject::cpu(0)) && !found[0].touches(&Subject::cpu(2)));
    // With the waits for each core the same.
    let delays = |ns: f64| {
        (10..=30).fold(pinned(cores(0.94)), |story, second| {
            let at = f64::from(second);
            let story = story.sample("runq", at, &Subject::cpu(0), &RUNQ_DELAY_MAX_NS, ns);
            story.sample("runq", at, &Subject::cpu(1), &RUNQ_DELAY_MAX_NS, ns)
        })
    };
    assert_eq!(severity(&delays(12e6)), Some(Severity::Warning));
    // Each has its core for itself: what waits does so for another reason.
    assert_eq!(severity(&delays(5e5)), None);
}

#[test]
fn busy_cores_that_hardly_anything_waits_for_are_none() {
    // One loop for each of two cores, two idle ones, daemons.
    let story = cores(0.94).core(2, (10.0, 30.0), (0.01, 0.02));
    let story = owner(story, "job.service", (1.9, 0.05), 2);
    let story = owner(story, "cron.service", (0.01, 0.1), 0);
    let story = waiting(story, "7", "cron.service", "cron", 500, "0");
    assert_eq!(severity(&story), None);
    // What waits could run elsewhere only if the other cores had room.
    let busy =
        Story::default()
            .core(0, (10.0, 30.0), (0.05, 0.94))
            .core(1, (10.0, 30.0), (0.05, 0.6));
    let busy = owner(busy, "hog.service", (1.6, 2.0), 3);
    let busy = waiting(busy, "7", "api.service", "api", 3_000, "0");
    assert_eq!(severity(&busy), None);
    // A core that the kernel has is CPU001's.
    let lost = Story::default().core(0, (10.0, 30.0), (0.96, 0.02));
    let lost = lost.core(1, (10.0, 30.0), (0.96, 0.02));
    assert_eq!(severity(&pinned(lost)), None);
}

/// A node whose waits for a core are the kernel's own means.
fn by_means(story: Story) -> Story {
    use sexton_model::fact::sexton::SEXTON_STEP_DOWN;
    let runq = subject(SubjectKind::Sensor, "runq");
    let says = [
        ("what", "waits for a core"),
        ("by", "means of /proc/schedstat"),
    ];
    story.event("runq", 10.0, &runq, &SEXTON_STEP_DOWN, &says)
}

#[test]
fn full_cores_of_which_nothing_tells_who_waits_are_not_assessed() {
    use sexton_model::fact::pressure::PRESSURE_CPU_SOME_RATIO;
    let full = || having(cores(0.94), "hog.service", "hog", "1.95");
    let means = by_means(full()).heard("pressure", 20.0);
    assert_eq!(means.told_by(&RULE).not_judged.len(), 1);
    let old = full().heard("runq", 30.0);
    assert_eq!(old.told_by(&RULE).not_judged.len(), 1);
    // Waits of 100 ms and more alone do not show who loses half of its time.
    let by_bpf = full().heard("runq", 30.0).heard("contention", 30.0);
    assert_eq!(by_bpf.told_by(&RULE).not_judged.len(), 1);
    // Where hardly any task waits at all, nothing has to be looked at.
    let quiet = (10..=30).fold(full(), |story, second| {
        let at = f64::from(second);
        story.sample(
            "pressure",
            at,
            &Subject::node(),
            &PRESSURE_CPU_SOME_RATIO,
            0.1,
        )
    });
    assert_eq!(severity(&quiet), Some(Severity::Note));
}

#[test]
fn a_wait_of_seconds_is_a_trouble_though_it_is_not_known_whose_work_it_is() {
    let says = [
        ("pid", "12"),
        ("comm", "sshd"),
        ("waited_ns", "10700000000"),
    ];
    let story = cores(0.94).event("runq", 25.0, &Subject::cpu(0), &RUNQ_WAIT, &says);
    // Recordings from before processes were looked at are judged as they were.
    assert_eq!(severity(&story), Some(Severity::Note));
    let found = story.heard("contention", 30.0).found_by(&RULE);
    assert_eq!(found[0].severity, Severity::Warning);
    assert!(
        found[0].title.contains("sshd waited 11 s for a core"),
        "{}",
        found[0].title
    );
}
