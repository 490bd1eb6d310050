use sexton_model::record::Sink;

use super::*;
use crate::testing::{Watch, at};

/// What is found when a limit is sampled every 10 s: used, limit, refusals.
fn judge(name: &str, samples: &[(f64, f64, Option<f64>)]) -> Vec<Finding> {
    let mut watch = Watch::new(100, 60);
    let subject = Subject::new(SubjectKind::Limit, name);
    for (i, (used, most, hits)) in samples.iter().enumerate() {
        let mut out = Sink::new("limits", at(100 + 10 * i as u64));
        out.sample(&subject, &LIMIT_USED_RATIO, used / most);
        out.sample(&subject, &LIMIT_USED, *used);
        out.sample(&subject, &LIMIT_MOST, *most);
        if let Some(hits) = hits {
            out.sample(&subject, &LIMIT_HITS, *hits);
        }
        watch.add(out);
    }
    watch.judge(&RULE).findings
}

#[test]
fn a_limit_that_is_near_is_a_warning_and_a_full_one_serious() {
    let found = judge(
        "kernel.pid_max",
        &[(29_000.0, 32_768.0, None), (30_000.0, 32_768.0, None)],
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Warning);
    assert_eq!(found[0].title, "the node has 30,000 PIDs of at most 32,768");
    assert_eq!(found[0].figure, "92 % of 32,768");
    assert_eq!(found[0].since, Some(at(110)));
    let found = judge("fs.file-max", &[(990.0, 1_000.0, None)]);
    assert_eq!(found[0].severity, Severity::Serious);
}

#[test]
fn refusals_that_grow_are_serious_whatever_is_used_now() {
    let name = "pids.max /system.slice/jobs.service";
    let found = judge(
        name,
        &[(100.0, 500.0, Some(3.0)), (120.0, 500.0, Some(15.0))],
    );
    assert_eq!(found[0].severity, Severity::Serious);
    assert_eq!(
        found[0].title,
        "jobs.service has reached its limit of 500 tasks: refused 12 times during the \
         watch"
    );
    let set = "sudo systemctl set-property --runtime jobs.service TasksMax=1000";
    assert_eq!(found[0].remedies[1].command.as_deref(), Some(set));
    assert!(found[0].touches(&Subject::new(SubjectKind::Unit, "jobs.service")));
}

#[test]
fn a_limit_with_room_is_innocent_and_so_are_old_refusals() {
    let table = "net.netfilter.nf_conntrack_max";
    assert!(
        judge(
            table,
            &[(890.0, 1_000.0, Some(7.0)), (880.0, 1_000.0, Some(7.0))]
        )
        .is_empty()
    );
    // The counter began anew with the table.
    assert!(
        judge(
            table,
            &[(10.0, 1_000.0, Some(7.0)), (10.0, 1_000.0, Some(0.0))]
        )
        .is_empty()
    );
}

#[test]
fn limits_of_users_and_destinations_are_named() {
    let found = judge(
        "fs.inotify.max_user_instances user 0",
        &[(120.0, 128.0, None)],
    );
    assert_eq!(
        found[0].title,
        "root has 120 inotify instances of at most 128"
    );
    let raise = "sudo sysctl -w fs.inotify.max_user_instances=256";
    assert_eq!(found[0].remedies[1].command.as_deref(), Some(raise));
    let found = judge(
        "net.ipv4.ip_local_port_range to 10.0.0.5:5432",
        &[(28_000.0, 28_232.0, None)],
    );
    assert_eq!(
        found[0].title,
        "the node has 28,000 local ports in use to 10.0.0.5:5432 of at most 28,232"
    );
    // Named by a newer sensor.
    assert!(judge("fs.other user 0", &[(1.0, 1.0, None)]).is_empty());
}

/// cgroup v1, where the sensor has no count of live ones.
#[test]
fn ids_of_memory_cgroups_are_told_by_the_census() {
    let judged = |live: f64| {
        let mut watch = Watch::new(100, 60);
        let mut out = Sink::new("memcg", at(110));
        out.sample(&Subject::node(), &MEMCG_LIVE, live);
        watch.add(out);
        watch.judge(&RULE).findings
    };
    let found = judged(60_000.0);
    assert_eq!(
        found[0].title,
        "the node has 60,000 memory cgroups of at most 65,535"
    );
    assert!(judged(5_000.0).is_empty());
}

#[test]
fn without_the_sensor_it_is_not_judged() {
    assert_eq!(
        Watch::blind("limits", "no procfs")
            .judge(&RULE)
            .not_judged
            .len(),
        1
    );
}

#[test]
fn a_process_near_its_limit_of_open_files_is_named() {
    let name = "RLIMIT_NOFILE pid 4711 java (main)";
    let found = judge(name, &[(700.0, 1_024.0, None), (1_020.0, 1_024.0, None)]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Warning);
    assert_eq!(
        found[0].title,
        "java (main) (pid 4711) has 1,020 open files of at most 1,024"
    );
    let raise = "sudo prlimit --pid 4711 --nofile=2048";
    assert_eq!(found[0].remedies[1].command.as_deref(), Some(raise));
    assert!(found[0].touches(&Subject::new(SubjectKind::Process, "4711")));
    assert!(judge(name, &[(700.0, 1_024.0, None)]).is_empty());
    assert!(judge("RLIMIT_NOFILE pid", &[(1.0, 1.0, None)]).is_empty());
}

#[test]
fn a_cgroup_with_a_tight_limit_is_in_trouble_only_when_it_is_refused_a_task() {
    let name = "pids.max /system.slice/one.service";
    assert!(judge(name, &[(1.0, 1.0, Some(0.0)), (1.0, 1.0, Some(0.0))]).is_empty());
    assert!(judge(name, &[(9.0, 10.0, None)]).is_empty());
    let refused = judge(name, &[(1.0, 1.0, Some(0.0)), (1.0, 1.0, Some(1.0))]);
    assert_eq!(refused[0].severity, Severity::Serious);
    assert_eq!(
        refused[0].title,
        "one.service has reached its limit of 1 task: refused once during the watch"
    );
    // It was refused one before the watch, and is at its limit still.
    let before = judge(name, &[(10.0, 10.0, Some(4.0)), (10.0, 10.0, Some(4.0))]);
    assert_eq!(before[0].severity, Severity::Serious);
    let roomy = judge(name, &[(499.0, 500.0, Some(0.0))]);
    assert_eq!(roomy[0].severity, Severity::Serious);
}

#[test]
fn a_peak_that_is_gone_weighs_less_and_is_past() {
    let gone = [
        (990.0, 1_000.0, None),
        (100.0, 1_000.0, None),
        (90.0, 1_000.0, None),
    ];
    let found = judge("fs.file-max", &gone);
    assert_eq!(found[0].severity, Severity::Warning);
    assert_eq!(
        found[0].title,
        "the node had 990 open files of at most 1,000, 60 s before the end of the watch"
    );
    let near = [(950.0, 1_000.0, None), (100.0, 1_000.0, None)];
    assert_eq!(judge("fs.file-max", &near)[0].severity, Severity::Note);
    let again = [
        (990.0, 1_000.0, None),
        (100.0, 1_000.0, None),
        (920.0, 1_000.0, None),
        (930.0, 1_000.0, None),
    ];
    let found = judge("fs.file-max", &again);
    assert_eq!(found[0].severity, Severity::Warning);
    assert_eq!(
        found[0].title,
        "the node has 930 open files of at most 1,000"
    );
    assert_eq!(found[0].since, Some(at(120)));
}
