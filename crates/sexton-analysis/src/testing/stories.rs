//! Whole stories, judged by all rules together.

use sexton_model::diagnosis::{Diagnosis, State};
use sexton_model::fact::unit as fact;
use sexton_model::finding::Confidence;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use crate::testing;
use crate::testing::{Churn, Watch, at, census, container_id, creations, lives};

mod unseen;

const FROM: u64 = 2_000_000;
const ECS: &str = "amazon/amazon-ecs-agent:latest";

fn units(active: &[&str]) -> Sink {
    let mut out = Sink::new("units", at(FROM));
    for unit in active {
        let subject = Subject::new(SubjectKind::Unit, *unit);
        let details = vec![("active".into(), "active".into())];
        out.event(at(FROM), &subject, &fact::UNIT_SEEN, testing::read(details));
    }
    out
}

/// The founding incident: a fresh container each 25 s for weeks, systemd shows nothing.
fn founding() -> Watch {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&[
        "ecs.service",
        "docker.service",
        "kubelet.service",
        "sshd.service",
    ]));
    watch.add(lives(FROM + 30, 25, 24, 10, ECS, "ecs-agent", "1"));
    // The last of them was born under our eyes.
    watch.add(creations(
        FROM + 5,
        [Churn {
            path: format!("/docker/{}", container_id(23)),
            creator: ("runc", 4_711),
            ancestry: "containerd-shim[70] < systemd[1]",
            unit: Some("containerd.service"),
            is_released: false,
        }],
    ));
    let ages: Vec<String> = (0..=10).map(|i| (i * 171_000).to_string()).collect();
    for i in 0..4 {
        let dying = 68_440 + i / 3;
        let ecs = (
            "/docker/<id>",
            "/docker/0123456789abcdef0123456789abcdef",
            dying,
            ages.join(" "),
        );
        watch.add(census(FROM + 9 * i, &[(ecs.0, ecs.1, ecs.2, &ecs.3)]));
    }
    watch
}

fn ids(chain: &[sexton_model::finding::FindingId]) -> Vec<&str> {
    chain.iter().map(|id| id.as_str()).collect()
}

#[test]
fn the_founding_incident_leads_to_its_unit() {
    let diagnosis = founding().diagnose();
    assert_eq!(diagnosis.state, State::CauseFound, "{diagnosis:#?}");
    assert_eq!(
        ids(&diagnosis.chains[0]),
        [
            "UNIT002:ecs.service",
            "CTR001:amazon/amazon-ecs-agent:latest",
            "MCG001:/docker/<id>",
            "MCG003:node"
        ]
    );
    assert_eq!(
        diagnosis.root().map(|id| id.as_str()),
        Some("UNIT002:ecs.service")
    );
    let forecast = &diagnosis.forecasts[0];
    assert!(
        (3_300.0..3_700.0).contains(&forecast.per_day),
        "{forecast:?}"
    );
}

/// Who is accused, and how surely.
fn accused(diagnosis: &Diagnosis) -> Vec<(String, Confidence)> {
    let causes = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.code.starts_with("UNIT"));
    causes
        .map(|finding| (finding.subject.name.to_string(), finding.confidence))
        .collect()
}

/// The same in haste: a container each second.
fn hasty() -> Watch {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["ecs.service", "docker.service"]));
    watch.add(lives(FROM + 28, 1, 28, 1, ECS, "ecs-agent", "1"));
    let by_docker = (0..28).map(|i| Churn {
        path: format!("/docker/{}", container_id(i)),
        creator: ("runc", 4_711 + i),
        ancestry: "containerd-shim[70] < systemd[1]",
        unit: Some("docker.service"),
        is_released: false,
    });
    watch.add(creations(FROM, by_docker));
    for i in 0..4 {
        let example = "/docker/0123456789abcdef0123456789abcdef";
        watch.add(census(
            FROM + 9 * i,
            &[("/docker/<id>", example, 40 + 9 * i, "")],
        ));
    }
    watch
}

#[test]
fn less_sight_accuses_nobody_else_and_is_never_surer() {
    for story in [founding, hasty, two_leakers, restart_loop] {
        let whole = story().diagnose();
        let sure = whole.confidence.expect("a chain");
        for sensor in ["cgroups", "containers", "memcg", "units"] {
            let part = story().without(sensor).diagnose();
            for (name, confidence) in accused(&part) {
                let known = accused(&whole)
                    .into_iter()
                    .find(|(known, _)| *known == name);
                let (_, before) =
                    known.unwrap_or_else(|| panic!("without {sensor}, {name} is accused"));
                assert!(
                    confidence <= before,
                    "without {sensor} it is surer of {name}"
                );
            }
            if let (State::CauseFound, Some(now)) = (part.state, part.confidence) {
                assert!(
                    now <= sure,
                    "without {sensor} it is surer: {now:?} than {sure:?}"
                );
            }
        }
    }
}

#[test]
fn the_order_of_records_changes_nothing() {
    let straight = format!("{:?}", founding().diagnose());
    let mut watch = founding();
    watch.records.reverse();
    assert_eq!(format!("{:?}", watch.diagnose()), straight);
    let mut watch = founding();
    let n = watch.records.len();
    watch.records.rotate_left(n / 3);
    assert_eq!(format!("{:?}", watch.diagnose()), straight);
}

#[test]
fn healthy_units_beside_it_change_nothing() {
    let alone = format!("{:?}", founding().diagnose());
    let mut watch = founding();
    watch.add(units(&[
        "chrony.service",
        "cron.service",
        "node-exporter.service",
    ]));
    assert_eq!(format!("{:?}", watch.diagnose()), alone);
}

fn leaker(i: u64, place: &str, comm: &'static str, pid: u64) -> Churn<'static> {
    Churn {
        path: format!("{place}/z-{i}"),
        creator: (comm, pid),
        ancestry: "bash[50] < init[1]",
        unit: None,
        is_released: false,
    }
}

fn two_leakers() -> Watch {
    let mut watch = Watch::new(FROM, 30);
    watch.add(creations(
        FROM,
        (0..28).map(|i| leaker(i, "/small", "slow", 801)),
    ));
    let many = (0..28).flat_map(|i| (0..4).map(move |j| 4 * i + j));
    watch.add(creations(
        FROM,
        many.clone().map(|i| leaker(i, "/large", "fast", 802)),
    ));
    for i in 0..4 {
        let origins = [
            ("/large/z-<n>", "/large/z-1", 40 + 36 * i, ""),
            ("/small/z-<n>", "/small/z-1", 40 + 9 * i, ""),
        ];
        watch.add(census(FROM + 9 * i, &origins));
    }
    watch
}

#[test]
fn two_leakers_are_both_named_the_greater_first() {
    let diagnosis = two_leakers().diagnose();
    let roots: Vec<Vec<&str>> = diagnosis.chains.iter().map(|chain| ids(chain)).collect();
    assert_eq!(
        roots,
        [
            ["UNIT002:fast[802]", "MCG001:/large/z-<n>"],
            ["UNIT002:slow[801]", "MCG001:/small/z-<n>"]
        ]
    );
}

#[test]
fn a_node_that_works_hard_is_healthy() {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["docker.service", "ci.service"]));
    watch.add(lives(FROM + 28, 1, 28, 1, "build:1", "job-", "0"));
    for (i, dying) in [16, 90, 40, 17].into_iter().enumerate() {
        let second = FROM + 9 * i as u64;
        watch.add(census(
            second,
            &[("/docker/<id>", "/docker/0123456789abcdef", dying, "")],
        ));
    }
    let diagnosis = watch.diagnose();
    assert_eq!(diagnosis.state, State::Healthy, "{:#?}", diagnosis.findings);
}

#[test]
fn all_blind_is_blind() {
    assert_eq!(
        Watch::blind("memcg", "not root").diagnose().state,
        State::Blind
    );
}

fn restart_loop() -> Watch {
    let mut watch = Watch::new(FROM, 30);
    watch.add(units(&["loop.service"]));
    let unit = Subject::new(SubjectKind::Unit, "loop.service");
    for i in 0..4 {
        let mut out = Sink::new("units", at(FROM + 9 * i));
        out.sample(&unit, &fact::UNIT_RESTARTS, (100 + 18 * i) as f64);
        out.sample(&unit, &fact::UNIT_STARTS, 18.0);
        watch.add(out);
        let own = "/system.slice/loop.service";
        watch.add(census(FROM + 9 * i, &[(own, own, 100 + 18 * i, "")]));
    }
    watch
}

#[test]
fn a_unit_in_a_restart_loop_leads_to_what_it_leaves() {
    let diagnosis = restart_loop().diagnose();
    assert_eq!(
        ids(&diagnosis.chains[0]),
        ["UNIT001:loop.service", "MCG001:/system.slice/loop.service"]
    );
    assert!(
        diagnosis
            .findings
            .iter()
            .all(|finding| finding.code != "UNIT002")
    );
}
