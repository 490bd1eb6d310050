//! Stories that differ from the founding incident: another runtime, supervisor, manager, pace
//! or reader. The root is right, or nobody is accused.

use sexton_model::fact::{cgroup, core, klog, stack};
use sexton_model::finding::Finding;

use super::*;
use crate::testing;
use crate::words::unit_name;

/// Growth as four censuses see it.
fn growing(watch: &mut Watch, pattern: &str, example: &str, each: u64) {
    for i in 0..4 {
        watch.add(census(
            FROM + 9 * i,
            &[(pattern, example, 40 + each * i, "")],
        ));
    }
}

fn roots(diagnosis: &Diagnosis) -> Vec<&str> {
    let chains = diagnosis.chains.iter();
    chains
        .filter_map(|chain| Some(chain.first()?.as_str()))
        .collect()
}

fn finding<'d>(diagnosis: &'d Diagnosis, id: &str) -> &'d Finding {
    let mut findings = diagnosis.findings.iter();
    let found = findings.find(|finding| finding.id().as_str() == id);
    found.unwrap_or_else(|| panic!("no {id} among {:#?}", diagnosis.findings))
}

fn commands(finding: &Finding) -> Vec<&str> {
    let remedies = finding.remedies.iter();
    remedies
        .filter_map(|remedy| remedy.command.as_deref())
        .collect()
}

fn texts(finding: &Finding) -> String {
    let texts = finding.evidence.iter().map(|one| one.text.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Births of own cgroups of a unit, by a systemd.
fn starts(unit: &'static str, place: &str, manager: &'static str) -> Sink {
    creations(
        FROM,
        (0..28).map(|_| Churn {
            path: format!("{place}/{unit}"),
            creator: ("systemd", 1),
            ancestry: "",
            unit: Some(manager),
            is_released: false,
        }),
    )
}

/// A quadlet runs its container inside its own unit, and systemd restarts it.
#[test]
fn a_quadlet_in_a_loop_is_the_root() {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["web.service"]));
    let unit = Subject::new(SubjectKind::Unit, "web.service");
    for i in 0..4 {
        let mut out = Sink::new("units", at(FROM + 9 * i));
        out.sample(&unit, &fact::UNIT_RESTARTS, (7 + 9 * i) as f64);
        watch.add(out);
    }
    let place = "/system.slice/web.service/libpod-payload-";
    watch.add(creations(
        FROM,
        (0..28).map(|i| Churn {
            path: format!("{place}{}", container_id(i)),
            creator: ("crun", 900 + i),
            ancestry: "conmon[70] < systemd[1]",
            unit: Some("web.service"),
            is_released: false,
        }),
    ));
    let example = format!("{place}{}", container_id(0));
    growing(
        &mut watch,
        "/system.slice/web.service/libpod-payload-<id>",
        &example,
        9,
    );
    let diagnosis = watch.diagnose();
    assert_eq!(
        roots(&diagnosis)[0],
        "UNIT001:web.service",
        "{diagnosis:#?}"
    );
    assert!(
        roots(&diagnosis)
            .iter()
            .all(|root| root.ends_with(":web.service"))
    );
    assert!(diagnosis.chains[0].len() >= 2, "{:?}", diagnosis.chains);
}

/// A job of cron's runs a container each minute, and all is well.
#[test]
fn a_job_that_cron_runs_each_minute_is_work() {
    for name in ["backup", "backup-"] {
        let mut watch = Watch::new(FROM, 30);
        watch.add(units(&["cron.service", "docker.service"]));
        watch.add(lives(FROM + 30, 60, 10, 5, "backup:1", name, "0"));
        watch.add(census(FROM, &[]));
        let diagnosis = watch.diagnose();
        assert_eq!(diagnosis.state, State::Healthy, "{:#?}", diagnosis.findings);
    }
    // That it comes every ten seconds under one name is no timetable.
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["docker.service"]));
    watch.add(lives(FROM + 30, 10, 30, 5, "backup:1", "backup", "0"));
    assert_eq!(roots(&watch.diagnose()), ["CTR001:backup:1"]);
}

/// A runner of builds has containers by the hundred, all of which end well.
#[test]
fn a_busy_builder_is_not_accused() {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["gitlab-runner.service", "docker.service"]));
    let helper = "gitlab/gitlab-runner-helper:17";
    watch.add(lives(FROM + 28, 4, 140, 3, helper, "runner-", "0"));
    watch.add(census(FROM, &[]));
    let diagnosis = watch.diagnose();
    assert_eq!(diagnosis.state, State::Healthy, "{:#?}", diagnosis.findings);
}

/// A unit of a user is named like one of the system's, which has nothing to do with it.
#[test]
fn a_unit_of_a_user_is_told_from_the_systems() {
    let place = "/user.slice/user-1000.slice/user@1000.service/app.slice";
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["ssh.service", "user@1000.service"]));
    watch.add(starts("ssh.service", place, "user@1000.service"));
    let own = format!("{place}/ssh.service");
    growing(&mut watch, &own, &own, 9);
    let diagnosis = watch.diagnose();
    let id = "UNIT002:user@1000.service/ssh.service";
    assert_eq!(roots(&diagnosis), [id], "{diagnosis:#?}");
    let commands = commands(finding(&diagnosis, id));
    assert!(
        commands[0].contains("--user stop ssh.service"),
        "{commands:?}"
    );
    assert!(texts(finding(&diagnosis, id)).contains("the user's systemd instance"));
}

/// A timer starts a unit each 5 s as it was told to, and each run leaves a cgroup.
#[test]
fn a_timer_that_leaks_is_led_back_to_its_unit() {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["tick.service"]));
    let unit = Subject::new(SubjectKind::Unit, "tick.service");
    for i in 0..6 {
        let mut out = Sink::new("units", at(FROM + 5 * i));
        let details = vec![
            ("by".into(), "start".into()),
            ("triggered_by".into(), "tick.timer".into()),
        ];
        out.event(
            at(FROM + 5 * i),
            &unit,
            &fact::UNIT_STARTED,
            testing::read(details),
        );
        watch.add(out);
    }
    watch.add(starts("tick.service", "/system.slice", "init.scope"));
    let own = "/system.slice/tick.service";
    growing(&mut watch, own, own, 9);
    let diagnosis = watch.diagnose();
    assert_eq!(
        roots(&diagnosis),
        ["UNIT002:tick.service"],
        "{diagnosis:#?}"
    );
    let found = finding(&diagnosis, "UNIT002:tick.service");
    assert!(
        found.title.contains("creates a new cgroup every"),
        "{}",
        found.title
    );
    assert!(texts(found).contains("by tick.timer"), "{}", texts(found));
    assert!(
        !texts(found).contains("no cgroup creation"),
        "{}",
        texts(found)
    );
}

fn pod_births(with_containers: bool) -> Watch {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["kubelet.service", "containerd.service"]));
    let pod = |i: u64| format!("/kubepods/burstable/pod{i:08x}-1111-2222-3333-444444444444");
    watch.add(creations(
        FROM,
        (0..28).map(|i| Churn {
            path: pod(i),
            creator: ("kubelet", 812),
            ancestry: "systemd[1]",
            unit: Some("kubelet.service"),
            is_released: false,
        }),
    ));
    watch.add(creations(
        FROM,
        (0..28).map(|i| Churn {
            path: format!("{}/{}", pod(i), container_id(i)),
            creator: ("runc", 4_711 + i),
            ancestry: "containerd-shim[70] < systemd[1]",
            unit: Some("containerd.service"),
            is_released: false,
        }),
    ));
    let mut out = Sink::new("containers", at(FROM));
    for i in (0..28).filter(|_| with_containers) {
        let details: testing::Texts = [
            ("id", container_id(i)),
            ("name", "job".into()),
            ("image", "etl:3".into()),
            ("pod", format!("etl-{i}")),
            ("pod_namespace", "batch".into()),
        ]
        .map(|(key, value)| (key.into(), value))
        .to_vec();
        let subject = Subject::new(SubjectKind::Container, container_id(i));
        out.event(
            at(FROM + i),
            &subject,
            &sexton_model::fact::container::CONTAINER_STARTED,
            testing::read(details),
        );
    }
    watch.add(out);
    growing(&mut watch, "/kubepods/burstable/pod<id>", &pod(1), 9);
    watch
}

/// kubelet and containerd make what a pod asks for.
#[test]
fn pods_that_come_and_go_are_named_and_not_kubelet() {
    let diagnosis = pod_births(true).diagnose();
    for id in roots(&diagnosis) {
        assert!(
            !id.contains("kubelet") && !id.contains("containerd"),
            "{id}"
        );
    }
    finding(&diagnosis, "UNIT002:etl:3");
}

/// Nobody says which pods: then whoever made them is named, and that somebody asked.
#[test]
fn without_anyone_else_the_daemon_is_named_as_one_that_was_asked() {
    let diagnosis = pod_births(false).diagnose();
    let named = diagnosis
        .findings
        .iter()
        .filter(|one| one.code == "UNIT002");
    let named: Vec<&Finding> = named.collect();
    assert!(!named.is_empty(), "{:#?}", diagnosis.findings);
    for one in named {
        assert!(one.title.contains("for an unknown client"), "{}", one.title);
        assert!(
            one.confidence <= Confidence::POSSIBLE,
            "{:?}",
            one.confidence
        );
    }
}

/// A supervisor inside one long-lived container makes cgroups below its own.
#[test]
fn a_supervisor_inside_a_container_is_named_and_not_docker() {
    let container = format!("/docker/{}", container_id(7));
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["docker.service"]));
    watch.add(creations(
        FROM,
        (0..28).map(|i| Churn {
            path: format!("/docker/{}/job-{i}", container_id(7)),
            creator: ("supervisord", 2_001),
            ancestry: "containerd-shim[70] < systemd[1]",
            unit: None,
            is_released: false,
        }),
    ));
    growing(
        &mut watch,
        "/docker/<id>/job-<n>",
        &format!("{container}/job-1"),
        9,
    );
    let diagnosis = watch.diagnose();
    assert_eq!(
        roots(&diagnosis),
        ["UNIT002:supervisord[2001]"],
        "{diagnosis:#?}"
    );
}

/// The unit that made them is gone since yesterday; they are not.
#[test]
fn a_leak_that_has_stopped_has_nothing_to_stop() {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["ssh.service"]));
    let own = "/system.slice/old.service";
    let ages: Vec<String> = (0..=10).map(|i| (86_400 + i * 9_000).to_string()).collect();
    for i in 0..4 {
        watch.add(census(FROM + 9 * i, &[(own, own, 5_003, &ages.join(" "))]));
    }
    let diagnosis = watch.diagnose();
    assert_eq!(roots(&diagnosis), ["UNIT002:old.service"]);
    let found = finding(&diagnosis, "UNIT002:old.service");
    assert!(found.title.contains("it no longer runs"), "{}", found.title);
    assert!(
        commands(found)
            .iter()
            .all(|command| !command.contains("stop"))
    );
    assert!(diagnosis.forecasts.is_empty(), "it does not grow");
}

fn reader(watch: &mut Watch, comm: &str) {
    let process = Subject::new(SubjectKind::Process, "812");
    for i in 1..=3 {
        let mut out = Sink::new("stacks", at(FROM + 10 * i));
        let details = [
            ("comm", comm),
            ("cpu", "3"),
            ("interval_ns", "10000000000"),
            ("core_ratio", "0.63"),
            ("kernel_ratio", "0.6"),
            ("hot_share", "0.41"),
            (
                "hot_stack",
                "entry_SYSCALL_64;ksys_read;seq_read;memory_stat_show;memory_stat_format",
            ),
        ];
        let details = details.map(|(key, value)| (key.into(), value.to_owned()));
        out.event(
            at(FROM + 10 * i),
            &process,
            &stack::PROCESS_ON_CORE,
            testing::read(details.to_vec()),
        );
        watch.add(out);
    }
}

/// Whoever reads is named, whatever it is called.
#[test]
fn any_reader_is_named() {
    for comm in ["node_exporter", "cadvisor", "lxcfs", "my reader"] {
        let mut watch = Watch::new(FROM, 30);
        reader(&mut watch, comm);
        let diagnosis = watch.diagnose();
        assert_eq!(roots(&diagnosis), [format!("CPU002:{comm}")]);
    }
}

/// Of two devices one resets, and the other is left alone.
#[test]
fn the_device_that_resets_is_named_and_not_the_other() {
    let mut watch = Watch::new(FROM, 30);
    let mut out = Sink::new("klog", at(FROM + 3));
    for (device, class) in [("eth1", "nic_tx_timeout"), ("eth0", "link_up")] {
        let details = vec![
            ("class".into(), class.to_owned()),
            ("device".into(), device.to_owned()),
            ("line".into(), format!("{device}: {class}")),
            ("written_by".into(), "kernel".into()),
        ];
        let subject = Subject::new(SubjectKind::Device, device);
        out.event(
            at(FROM + 3),
            &subject,
            &klog::KLOG_EVENT,
            testing::read(details),
        );
    }
    watch.add(out);
    let diagnosis = watch.diagnose();
    assert_eq!(diagnosis.state, State::SymptomsOnly);
    assert_eq!(
        roots(&diagnosis),
        ["NIC001:eth1"],
        "{:#?}",
        diagnosis.findings
    );
}

/// What the hypervisor takes is told as that, and no process or core is accused of it.
#[test]
fn time_that_was_stolen_is_no_lost_core() {
    let mut watch = Watch::new(FROM, 30);
    for i in 0..300 {
        let moment = at(FROM).after(std::time::Duration::from_millis(100 * i));
        let mut out = Sink::new("cores", moment);
        for (fact, value) in [
            (&core::CORE_SYSTEM_RATIO, 0.05),
            (&core::CORE_STEAL_RATIO, 0.9),
            (&core::CORE_USER_RATIO, 0.05),
        ] {
            out.sample(&Subject::cpu(0), fact, value);
        }
        watch.add(out);
    }
    let diagnosis = watch.diagnose();
    let ids: Vec<_> = diagnosis
        .findings
        .iter()
        .map(|finding| finding.id().to_string())
        .collect();
    assert_eq!(ids, ["CPU005:node"], "{:#?}", diagnosis.findings);
}

/// Names are chosen by others. What people are told to type does what it says.
#[test]
fn names_cannot_make_anyone_type_more() {
    let evil = "/system.slice/$(reboot);x.service";
    let mut watch = Watch::new(FROM, 30);
    watch.add(creations(
        FROM,
        (0..28).map(|i| Churn {
            path: format!("{evil}/run-{i}"),
            creator: ("sh", 900),
            ancestry: "systemd[1]",
            unit: None,
            is_released: false,
        }),
    ));
    growing(
        &mut watch,
        &format!("{evil}/run-<n>"),
        &format!("{evil}/run-1"),
        9,
    );
    let diagnosis = watch.diagnose();
    assert!(!diagnosis.findings.is_empty());
    for command in diagnosis.findings.iter().flat_map(commands) {
        let outside: String = command.split('\'').step_by(2).collect();
        assert!(!outside.contains(['$', ';', '(', '`']), "{command}");
    }
    assert!(unit_name::systemctl("stop", "a b.service").ends_with("'a b.service'"));
}

/// A burst told as one is of one pattern; nobody else is accused of it.
#[test]
fn births_told_as_a_burst_lead_to_their_maker() {
    let mut watch = Watch::new(FROM, 30);
    for i in 0..28 {
        let mut out = Sink::new("cgroups", at(FROM + i));
        for what in ["cgroup_born", "cgroup_removed"] {
            let details: testing::Texts = [
                ("what", what),
                ("n", "40"),
                ("pattern", "/jobs/run-<n>"),
                ("creator_comm", "xargs"),
                ("creator_pid", "4242"),
                ("creator_ancestry", "cron[900] < systemd[1]"),
            ]
            .map(|(key, value)| (key.into(), value.to_owned()))
            .to_vec();
            let subject = Subject::new(SubjectKind::Cgroup, "/jobs/run-<n>");
            out.event(
                at(FROM + i),
                &subject,
                &cgroup::CGROUP_BURST,
                testing::read(details),
            );
        }
        watch.add(out);
    }
    growing(&mut watch, "/jobs/run-<n>", "/jobs/run-1", 360);
    assert_eq!(roots(&watch.diagnose()), ["UNIT002:xargs[4242]"]);
}
