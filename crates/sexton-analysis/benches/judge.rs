//! How long it takes to judge a recording, as its events grow in number.
//!
//! A unit's container is started and dies each second, as in the founding incident: a cgroup is
//! created and removed, its runtime reports start and exit, and a client of the runtime exits.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::time::{Duration, Instant};

use sexton_analysis::live::{EVERY, Lives, Stepper};
use sexton_analysis::{Policy, judge};
use sexton_model::fact::cgroup::{CGROUP_BORN, CGROUP_REMOVED, CgroupCreated, CgroupRemoved};
use sexton_model::fact::container::{
    CONTAINER_EXITED, CONTAINER_STARTED, ContainerExited, ContainerStarted,
};
use sexton_model::fact::exit::{PROCESS_FAILED, ProcessExit};
use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_LIVE};
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::fact::task::Task;
use sexton_model::fact::unit::{UNIT_SEEN, UnitSeen};
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

/// Events of one run of a container.
const EVENTS_EACH: usize = 5;

const SECOND: u64 = 1_000_000_000;

const SENSORS: [&str; 10] = [
    "cgroups",
    "containers",
    "cores",
    "exits",
    "journal",
    "klog",
    "memcg",
    "napi",
    "stacks",
    "units",
];

fn main() {
    println!("| events | judging takes | each event | one step of the agent |");
    println!("| ---: | ---: | ---: | ---: |");
    for n_events in [10_000, 100_000, 350_000, 1_000_000] {
        let records = Records::new(story(n_events / EVENTS_EACH));
        let best = (0..3).map(|_| once(&records)).min().unwrap_or_default();
        println!(
            "| {n_events} | {:.0} ms | {:.2} us | {:.1} ms |",
            best.as_secs_f64() * 1e3,
            best.as_secs_f64() * 1e6 / n_events as f64,
            last_step(records).as_secs_f64() * 1e3
        );
    }
}

/// How long the last step takes when all of it came before: what an agent does every 30 s.
fn last_step(records: Records) -> Duration {
    let mut stepper = Stepper::new(Policy::default(), EVERY, Lives::default());
    for record in records.iter() {
        stepper.take(record.clone());
    }
    stepper.skip_to(records.iter().last().map_or(at(0), |last| last.at));
    drop(records);
    // The first step forgets what is old; the next is like all that follow.
    stepper.step();
    let began = Instant::now();
    let step = stepper.step().expect("the watch has begun");
    let took = began.elapsed();
    assert!(!step.diagnosis.findings.is_empty(), "nothing is found");
    took
}

fn once(records: &Records) -> Duration {
    let began = Instant::now();
    let diagnosis = judge(records, &Policy::default());
    let took = began.elapsed();
    let found = diagnosis.findings.iter();
    let found: Vec<String> = found.map(|found| found.id().to_string()).collect();
    assert!(
        found.iter().any(|id| id == "UNIT002:ecs.service"),
        "the unit is not named: {found:?}, {:?}",
        diagnosis.not_judged
    );
    took
}

fn story(n_runs: usize) -> Vec<Record> {
    let from = 1_000_u64;
    let to = from + n_runs as u64 + 1;
    let mut records = Vec::new();
    for second in [from, to] {
        for sensor in SENSORS {
            let mut out = Sink::new(sensor, at(second));
            out.sample(
                &Subject::new(SubjectKind::Sensor, sensor),
                &SEXTON_POLL_NS,
                1.0,
            );
            records.extend(out.into_records());
        }
        let mut out = Sink::new("memcg", at(second));
        out.sample(&Subject::node(), &MEMCG_LIVE, 240.0);
        out.sample(&Subject::node(), &MEMCG_DYING, (second - from) as f64);
        records.extend(out.into_records());
    }
    let mut out = Sink::new("units", at(from));
    for unit in ["ecs.service", "docker.service"] {
        let seen = UnitSeen {
            active: Some("active".into()),
            ..UnitSeen::default()
        };
        let subject = Subject::new(SubjectKind::Unit, unit);
        out.event(at(from), &subject, &UNIT_SEEN, seen);
    }
    for i in 0..n_runs as u64 {
        run(i, from + 1 + i, &mut out);
    }
    records.extend(out.into_records().into_iter().map(by_its_sensor));
    records
}

/// One run of the container.
fn run(i: u64, second: u64, out: &mut Sink) {
    let id = format!("{i:064x}");
    let path = format!("/docker/{id}");
    let cgroup = Subject::new(SubjectKind::Cgroup, path.as_str());
    let container = Subject::new(SubjectKind::Container, id.as_str());
    let later = |ms: u64| Moment::from_ns(second * SECOND + ms * 1_000_000);
    let created = CgroupCreated {
        path: path.clone(),
        id: Some(i),
        container: Some(id.clone()),
        creator_pid: Some(812),
        creator_comm: Some("dockerd".into()),
        creator_unit: Some("docker.service".into()),
        creator_ancestry: vec![Task {
            comm: "systemd".into(),
            pid: 1,
        }],
        ..CgroupCreated::default()
    };
    out.event(later(0), &cgroup, &CGROUP_BORN, created);
    let started = ContainerStarted {
        id: Some(id.clone()),
        name: Some("ecs-agent".into()),
        image: Some("amazon/amazon-ecs-agent:latest".into()),
        runtime: Some("docker".into()),
        ..ContainerStarted::default()
    };
    out.event(later(10), &container, &CONTAINER_STARTED, started);
    let exited = ContainerExited {
        id: Some(id.clone()),
        name: Some("ecs-agent".into()),
        image: Some("amazon/amazon-ecs-agent:latest".into()),
        runtime: Some("docker".into()),
        exit_code: Some(1),
        lifetime_ms: Some(400),
        ..ContainerExited::default()
    };
    out.event(later(410), &container, &CONTAINER_EXITED, exited);
    let removed = CgroupRemoved {
        path,
        id: Some(i),
        container: Some(id),
        lived_ns: Some(420_000_000),
        ..CgroupRemoved::default()
    };
    out.event(later(420), &cgroup, &CGROUP_REMOVED, removed);
    let client = ProcessExit {
        comm: Some("docker".into()),
        exit_code: Some(1),
        unit: Some("ecs.service".into()),
        lifetime_ns: Some(500_000_000),
        ..ProcessExit::default()
    };
    let process = Subject::new(SubjectKind::Process, (i % 30_000).to_string());
    out.event(later(430), &process, &PROCESS_FAILED, client);
}

/// All came through one sink; each is its own sensor's.
fn by_its_sensor(mut record: Record) -> Record {
    record.sensor = match record.subject.kind {
        SubjectKind::Cgroup => "cgroups",
        SubjectKind::Container => "containers",
        SubjectKind::Process => "exits",
        _ => "units",
    }
    .into();
    record
}

fn at(second: u64) -> Moment {
    Moment::from_ns(second * SECOND)
}
