use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::fact::exit::{CLIENT_ENDED, PROCESS_FAILED};
use sexton_model::fact::unit as fact;
use sexton_model::finding::{Confidence, Finding};
use sexton_model::record::Sink;

use super::*;
use crate::testing;
use crate::testing::{Churn, Watch, at, census, container_id, creations, lives};
use crate::words::process;

const FROM: u64 = 100_000;

fn seen(watch: &mut Watch, units: &[&str]) {
    let mut out = Sink::new("units", at(FROM));
    for unit in units {
        let subject = Subject::new(SubjectKind::Unit, *unit);
        let details = vec![
            ("active".into(), "active".into()),
            ("sub".into(), "running".into()),
        ];
        out.event(at(FROM), &subject, &fact::UNIT_SEEN, testing::read(details));
    }
    watch.add(out);
}

fn guilty(watch: Watch) -> Vec<Finding> {
    watch.judge(&RULE).findings
}

/// A loop whose body makes a cgroup by hand, below a parent of its own.
fn by_shell(i: u64, pid: u64, place: &str, unit: Option<&'static str>) -> Churn<'static> {
    let ancestry = format!("loop.sh[{pid}] < bash[77] < sshd[12] < init[1]");
    Churn {
        path: format!("{place}/run-{i}"),
        creator: ("mkdir", 5_000 + 2 * i + pid),
        ancestry: Box::leak(ancestry.into_boxed_str()),
        unit,
        is_released: false,
    }
}

#[test]
fn a_shell_loop_without_any_unit_is_named_by_its_process() {
    let mut watch = Watch::new(FROM, 30);
    watch.add(creations(
        FROM,
        (0..28).map(|i| by_shell(i, 900, "/jobs", None)),
    ));
    let findings = guilty(watch);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id().as_str(), "UNIT002:loop.sh[900]");
    assert!(findings[0].touches(&Subject::new(SubjectKind::Cgroup, "/jobs/run-<n>")));
    let remedies = findings[0].remedies.iter();
    let stops: Vec<_> = remedies.filter_map(|r| r.command.as_deref()).collect();
    assert_eq!(stops, [&*process::pause(900), "ps -fp 900"]);
}

/// What a socket that accepts each connection by itself has systemd start.
fn by_connection(i: u64) -> Churn<'static> {
    Churn {
        path: format!("/system.slice/system-echo.slice/echo@{i}-17-0.service"),
        creator: ("systemd", 1),
        ancestry: "",
        unit: Some("init.scope"),
        is_released: false,
    }
}

#[test]
fn instances_are_led_back_to_their_socket_or_template() {
    let check = |units: &[&str], expected: &str, stop: &str| {
        let mut watch = Watch::new(FROM, 30);
        seen(&mut watch, units);
        watch.add(creations(FROM, (0..28).map(by_connection)));
        let findings = guilty(watch);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].id().as_str(), expected);
        assert_eq!(findings[0].remedies[0].command.as_deref(), Some(stop));
    };
    check(
        &["echo.socket"],
        "UNIT002:echo.socket",
        "sudo systemctl stop echo.socket",
    );
    check(
        &["other.socket"],
        "UNIT002:echo@.service",
        "sudo systemctl stop 'echo@*.service'",
    );
}

#[test]
fn two_loops_are_two_though_one_shell_began_both() {
    let mut watch = Watch::new(FROM, 30);
    watch.add(creations(
        FROM,
        (0..28).map(|i| by_shell(i, 900, "/jobs", None)),
    ));
    watch.add(creations(
        FROM,
        (0..28).map(|i| by_shell(i, 901, "/other", None)),
    ));
    let names: Vec<String> = guilty(watch).iter().map(|f| f.id().to_string()).collect();
    assert_eq!(names, ["UNIT002:loop.sh[900]", "UNIT002:loop.sh[901]"]);
}

#[test]
fn ancestry_leads_to_the_unit_though_systemd_counts_nothing() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["agent.service"]);
    watch.add(creations(
        FROM,
        (0..28).map(|i| by_shell(i, 900, "/jobs", Some("agent.service"))),
    ));
    let findings = guilty(watch);
    assert_eq!(findings[0].id().as_str(), "UNIT002:agent.service");
    assert!(
        findings[0].title.contains("is \"active\" but"),
        "{}",
        findings[0].title
    );
    assert_eq!(findings[0].confidence, Confidence::percent(90));
}

fn by_docker(i: u64, is_released: bool) -> Churn<'static> {
    Churn {
        path: format!("/docker/{}", container_id(i)),
        creator: ("runc", 6_000 + i),
        ancestry: "containerd-shim[70] < systemd[1]",
        unit: Some("docker.service"),
        is_released,
    }
}

#[test]
fn dockerd_is_not_accused_of_what_ecs_asks() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["ecs.service", "docker.service"]);
    watch.add(creations(FROM, (0..28).map(|i| by_docker(i, false))));
    let image = "amazon/amazon-ecs-agent:latest";
    watch.add(lives(FROM + 28, 1, 28, 1, image, "ecs-agent", "1"));
    let findings = guilty(watch);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id().as_str(), "UNIT002:ecs.service");
    // Known by signature; the name of the unit is not that of the container.
    assert_eq!(findings[0].confidence, Confidence::percent(80));
}

#[test]
fn a_slow_loop_is_led_back_by_what_the_runtime_remembers() {
    let mut watch = Watch::new(FROM, 30).without("cgroups");
    seen(&mut watch, &["ecs.service"]);
    let image = "amazon/amazon-ecs-agent:latest";
    watch.add(lives(FROM + 30, 25, 24, 10, image, "ecs-agent", "1"));
    watch.add(census(
        FROM,
        &[("/docker/<id>", "/docker/0123456789abcdef", 68_412, "")],
    ));
    let findings = guilty(watch);
    assert_eq!(findings[0].id().as_str(), "UNIT002:ecs.service");
}

#[test]
fn a_unit_named_like_the_container_is_behind_it() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["collector.service"]);
    watch.add(lives(
        FROM + 30,
        3,
        12,
        1,
        "registry.local/metrics:2",
        "collector",
        "1",
    ));
    let findings = guilty(watch);
    assert_eq!(findings[0].id().as_str(), "UNIT002:collector.service");
    assert_eq!(findings[0].confidence, Confidence::percent(60));
}

/// Clients of a unit that end with the containers of [`by_docker`], with this status.
fn clients(unit: &str, code: &str) -> Sink {
    let mut out = Sink::new("exits", at(FROM + 28));
    for i in 0..28 {
        let details = vec![
            ("comm".into(), "docker".into()),
            ("unit".into(), unit.to_owned()),
            ("exit_code".into(), code.to_owned()),
            ("lifetime_ns".into(), "2000000000".into()),
        ];
        let subject = Subject::new(SubjectKind::Process, (7_000 + i).to_string());
        out.event(
            at(FROM + 1 + i),
            &subject,
            &PROCESS_FAILED,
            testing::read(details),
        );
    }
    out
}

/// Who is found, and how sure that is, when that unit's clients end with that status.
fn by_clients(unit: &str, code: &str) -> (String, Confidence) {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["poller.service", "docker.service"]);
    watch.add(creations(FROM, (0..28).map(|i| by_docker(i, false))));
    watch.add(lives(FROM + 28, 1, 28, 1, "probe:1", "job-", "5"));
    watch.add(clients(unit, code));
    let findings = guilty(watch);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    (findings[0].id().to_string(), findings[0].confidence)
}

#[test]
fn who_runs_the_client_of_a_container_is_behind_it() {
    let found = by_clients("poller.service", "5");
    let expected = ("UNIT002:poller.service".to_owned(), Confidence::percent(85));
    assert_eq!(found, expected);
}

/// As `ctr run` makes them: cgroups with the id that was chosen, below the namespace, by a
/// runtime below the first process, and told by containerd.
fn by_containerd(maker: &'static str) -> Vec<String> {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["poller.service", "containerd.service"]);
    let churn = (0..28).map(|i| Churn {
        path: format!("/default/job-{i}"),
        creator: (maker, 6_000 + i),
        ancestry: "containerd-shim[70] < systemd[1]",
        unit: None,
        is_released: false,
    });
    watch.add(creations(FROM, churn));
    let mut out = Sink::new("containers", at(FROM + 28));
    // Of the last one nothing is told yet.
    for i in 0..27 {
        let id = format!("job-{i}");
        let details = vec![
            ("id".into(), id.clone()),
            ("image".into(), "probe:1".to_owned()),
            ("exit_code".into(), "5".to_owned()),
        ];
        let subject = Subject::new(SubjectKind::Container, id);
        let started = details[..2].to_vec();
        out.event(
            at(FROM + i),
            &subject,
            &CONTAINER_STARTED,
            testing::read(started),
        );
        out.event(
            at(FROM + 1 + i),
            &subject,
            &CONTAINER_EXITED,
            testing::read(details),
        );
    }
    watch.add(out);
    watch.add(clients("poller.service", "5"));
    guilty(watch)
        .iter()
        .map(|one| one.id().to_string())
        .collect()
}

#[test]
fn a_container_whose_id_was_chosen_is_led_back_by_its_client() {
    assert_eq!(by_containerd("runc"), ["UNIT002:poller.service"]);
    // A directory that only has such a name is no container.
    assert_ne!(by_containerd("mkdir"), ["UNIT002:poller.service"]);
}

#[test]
fn clients_that_end_otherwise_are_others() {
    let found = by_clients("poller.service", "1");
    assert_eq!(found.0, "UNIT002:docker.service");
}

/// Clients of a unit that end well, each `lifetime` long, the last of them a second after the
/// last of `n` births a second.
fn clients_that_end_well(unit: &str, comm: &str, n: u64, lifetime_ms: u64) -> Sink {
    let mut out = Sink::new("exits", at(FROM + n));
    for i in 0..n {
        let details = vec![
            ("comm".into(), comm.into()),
            ("unit".into(), unit.to_owned()),
            ("exit_code".into(), "0".to_owned()),
            ("lifetime_ns".into(), (lifetime_ms * 1_000_000).to_string()),
        ];
        let subject = Subject::new(SubjectKind::Process, (9_000 + i).to_string());
        out.event(
            at(FROM + 1 + i),
            &subject,
            &CLIENT_ENDED,
            testing::read(details),
        );
    }
    out
}

#[test]
fn clients_of_containers_that_end_well_are_behind_them() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["poller.service", "docker.service"]);
    watch.add(creations(FROM, (0..28).map(|i| by_docker(i, false))));
    watch.add(lives(FROM + 28, 1, 28, 1, "probe:1", "job-", "0"));
    watch.add(clients_that_end_well("poller.service", "docker", 28, 2_000));
    let findings = guilty(watch);
    assert_eq!(findings[0].id().as_str(), "UNIT002:poller.service");
    assert_eq!(findings[0].confidence, Confidence::percent(85));
}

/// The engine is asked every few seconds, and slowly on a busy node: what it has not told yet is
/// no reason to take the churn for over.
#[test]
fn containers_that_are_not_told_yet_are_as_those_before() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["poller.service", "docker.service"]);
    watch.add(creations(FROM, (0..28).map(|i| by_docker(i, false))));
    watch.add(lives(FROM + 18, 1, 18, 1, "probe:1", "job-", "0"));
    watch.add(clients_that_end_well("poller.service", "docker", 18, 2_000));
    let findings = guilty(watch);
    let ids: Vec<String> = findings.iter().map(|one| one.id().to_string()).collect();
    assert_eq!(ids, ["UNIT002:poller.service"]);
    assert!(
        findings[0].figure.starts_with("28 starts in"),
        "{}",
        findings[0].figure
    );
}

/// No engine tells of containers here, so only the moments can lead to the unit.
#[test]
fn a_client_that_is_at_work_at_each_birth_has_asked_for_it() {
    let found = |runs: &[(&str, u64, u64)]| {
        let mut watch = Watch::new(FROM, 30);
        seen(
            &mut watch,
            &["poller.service", "monitor.service", "docker.service"],
        );
        watch.add(creations(FROM, (0..28).map(|i| by_docker(i, false))));
        for (unit, n, lifetime_ms) in runs {
            watch.add(clients_that_end_well(unit, "docker", *n, *lifetime_ms));
        }
        let findings = guilty(watch);
        (findings[0].id().to_string(), findings[0].confidence)
    };
    let poller = ("poller.service", 28, 1_200);
    let expected = ("UNIT002:poller.service".to_owned(), Confidence::percent(75));
    assert_eq!(found(&[poller]), expected);
    // One that looks now and then is not at work at most of them; of two nobody can say.
    assert_eq!(found(&[poller, ("monitor.service", 6, 1_200)]), expected);
    let daemon = ("UNIT002:docker.service".to_owned(), Confidence::POSSIBLE);
    assert_eq!(found(&[poller, ("monitor.service", 28, 1_200)]), daemon);
}

#[test]
fn dockerd_is_named_when_nobody_else_can_be() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["docker.service"]);
    watch.add(creations(FROM, (0..28).map(|i| by_docker(i, false))));
    let findings = guilty(watch);
    assert_eq!(findings[0].id().as_str(), "UNIT002:docker.service");
    assert_eq!(findings[0].confidence, Confidence::POSSIBLE);
    assert!(
        findings[0].title.contains("for an unknown client"),
        "{}",
        findings[0].title
    );
}

#[test]
fn work_that_drains_accuses_nobody() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["docker.service", "ci.service"]);
    watch.add(creations(FROM, (0..28).map(|i| by_docker(i, true))));
    watch.add(lives(FROM + 28, 1, 28, 1, "build:1", "job-", "0"));
    watch.add(census(
        FROM,
        &[("/docker/<id>", "/docker/0123456789abcdef", 90, "")],
    ));
    watch.add(census(
        FROM + 27,
        &[("/docker/<id>", "/docker/0123456789abcdef", 3, "")],
    ));
    assert!(guilty(watch).is_empty());
}

#[test]
fn a_backlog_alone_leads_to_the_unit_in_its_path() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["batch.service"]);
    let place = (
        "/system.slice/batch.service/w-<n>",
        "/system.slice/batch.service/w-7",
        4_211,
        "",
    );
    watch.add(census(FROM, &[place]));
    let findings = guilty(watch);
    assert_eq!(findings[0].id().as_str(), "UNIT002:batch.service");
    assert!(
        findings[0].title.contains("none created during"),
        "{}",
        findings[0].title
    );
    assert!(findings[0].confidence <= Confidence::LIKELY);
}

#[test]
fn what_was_made_and_then_no_more_is_told_so() {
    let mut watch = Watch::new(FROM, 60);
    watch.add(creations(
        FROM,
        (0..20).map(|i| by_shell(i, 900, "/jobs", None)),
    ));
    for second in [27, 40, 59] {
        watch.add(census(
            FROM + second,
            &[("/jobs/run-<n>", "/jobs/run-7", 4_211, "")],
        ));
    }
    let findings = guilty(watch);
    let title = &findings[0].title;
    assert!(title.contains("20 created during the watch"), "{title}");
}

#[test]
fn a_unit_that_systemd_restarts_is_another_rules_matter() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["agent.service"]);
    watch.add(creations(
        FROM,
        (0..28).map(|i| by_shell(i, 900, "/jobs", Some("agent.service"))),
    ));
    let unit = Subject::new(SubjectKind::Unit, "agent.service");
    for (second, n) in [(0, 100.0), (10, 110.0)] {
        let mut out = Sink::new("units", at(FROM + second));
        out.sample(&unit, &fact::UNIT_RESTARTS, n);
        watch.add(out);
    }
    assert!(guilty(watch).is_empty());
}

#[test]
fn everything_blind_is_not_judged() {
    assert_eq!(
        Watch::blind("cgroups", "no").judge(&RULE).not_judged.len(),
        1
    );
}

#[test]
fn one_container_that_starts_is_not_behind_a_pile_of_containers() {
    let mut watch = Watch::new(FROM, 30);
    seen(&mut watch, &["web.service", "docker.service"]);
    watch.add(creations(FROM, (0..1).map(|i| by_docker(i, true))));
    watch.add(lives(FROM + 30, 29, 1, 600, "web:1", "web", "0"));
    let mut out = census(
        FROM,
        &[("/docker/<id>", "/docker/0123456789abcdef", 9_000, "")],
    )
    .into_records();
    watch.records.append(&mut out);
    assert!(guilty(watch).is_empty());
}
