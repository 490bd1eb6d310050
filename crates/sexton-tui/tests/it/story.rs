//! A node like that of the founding incident, as records. Invented: its figures are
//! chosen so that each can be found on the screen.

use std::sync::Arc;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use sexton_model::fact::cgroup::{
    CGROUP_BORN, CGROUP_BURST, CgroupBurst, CgroupChange, CgroupCreated,
};
use sexton_model::fact::container::{
    CONTAINER_EXITED, CONTAINER_RUNNING, CONTAINER_STARTED, ContainerExited, ContainerStarted,
};
use sexton_model::fact::exit::{PROCESS_FAILED, PROCESS_FAILED_BURST, ProcessBurst, ProcessExit};
use sexton_model::fact::klog::{KLOG_EVENT, KernelLine};
use sexton_model::fact::napi::{NAPI_SERVED, NAPI_STARVED, NAPI_WAIT_NS, NapiDelay};
use sexton_model::fact::nic::{NIC_LINK, NIC_RESETS, NicLink};
use sexton_model::fact::runq::{RUNQ_DELAY_MAX_NS, RUNQ_WAITING_NS};
use sexton_model::fact::unit::{StartedBy, UNIT_FAILED, UNIT_STARTED, UnitStarted, UnitStopped};
use sexton_model::fact::{EventFact, Fact, cgroup, core, memcg, pressure, sexton};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_tui::{View, render};

static PRESSURE: [&Fact; 3] = [
    &pressure::PRESSURE_CPU_SOME_RATIO,
    &pressure::PRESSURE_MEMORY_SOME_RATIO,
    &pressure::PRESSURE_IO_SOME_RATIO,
];

/// The first second of the story, since boot.
const BEGIN: u64 = 7200;

/// Its wall clock then: 2026-01-01 12:00:00 UTC.
const WALL: u64 = 1_767_268_800;

/// A moment of the story.
pub(crate) fn at(second: u64) -> Moment {
    Moment::from_ns((BEGIN + second) * 1_000_000_000)
}

fn record(second: u64, sensor: &'static str, subject: Subject, body: Body) -> Record {
    Record {
        at: at(second),
        sensor: sensor.into(),
        subject,
        body,
    }
}

fn sample(
    second: u64,
    sensor: &'static str,
    subject: Subject,
    fact: &'static Fact,
    value: f64,
) -> Record {
    record(second, sensor, subject, Body::Sample { fact, value })
}

fn told<T: Payload>(
    second: u64,
    sensor: &'static str,
    subject: Subject,
    fact: &'static EventFact<T>,
    says: T,
) -> Record {
    let body = Body::Event {
        fact: &fact.fact,
        payload: Arc::new(says),
    };
    record(second, sensor, subject, body)
}

fn unit(name: &'static str) -> Subject {
    Subject::new(SubjectKind::Unit, name)
}

/// Each core has a wave of its own; core 3 is lost from second 200 on.
fn share(cpu: u32, second: u64) -> f64 {
    if cpu == 3 && second >= 200 {
        return 0.97;
    }
    let phase = (second + u64::from(cpu) * 7) % 60;
    0.02 + phase.min(60 - phase) as f64 / 30.0 * 0.1 * f64::from(cpu % 5 + 1)
}

/// Five minutes of the cores alone.
pub(crate) fn cores(n: u32) -> Vec<Record> {
    let mut records = Vec::new();
    for second in 0..300 {
        let mut worst = (0, 0.0);
        for cpu in 0..n {
            // Nothing is known of core 1 for a while.
            if cpu == 1 && (90..120).contains(&second) {
                continue;
            }
            let share = share(cpu, second);
            let mut add = |fact, part| {
                records.push(sample(
                    second,
                    "cores",
                    Subject::cpu(cpu),
                    fact,
                    share * part,
                ));
            };
            add(&core::CORE_SYSTEM_RATIO, 0.5);
            add(&core::CORE_IRQ_RATIO, 0.25);
            add(&core::CORE_SOFTIRQ_RATIO, 0.25);
            if share > worst.1 {
                worst = (cpu, share);
            }
        }
        let fact = &core::CORE_WORST_SYSTEM_RATIO;
        records.push(sample(
            second,
            "cores",
            Subject::cpu(worst.0),
            fact,
            worst.1,
        ));
    }
    records
}

fn census() -> Vec<Record> {
    let mut records = Vec::new();
    for second in (0..300).step_by(30) {
        let mut add = |subject, fact, value| {
            records.push(sample(second, "memcg", subject, fact, value));
        };
        let grown = second as f64 / 30.0 * 23.0;
        add(Subject::node(), &memcg::MEMCG_DYING, 68_680.0 + grown);
        add(Subject::node(), &memcg::MEMCG_LIVE, 431.0);
        add(Subject::node(), &memcg::MEMCG_DYING_BYTES, 1_503_238_553.0);
        add(unit("ecs.service"), &memcg::MEMCG_DYING, 61_003.0 + grown);
        add(unit("cron.service"), &memcg::MEMCG_DYING, 7_677.0);
        let wall = (WALL + second) as f64 * 1e9;
        add(Subject::node(), &sexton::SEXTON_WALL_CLOCK_NS, wall);
    }
    records
}

fn cgroup(path: &str, creator: &str, unit: &str) -> CgroupCreated {
    CgroupCreated {
        path: path.into(),
        creator_unit: Some(creator.into()),
        unit: Some(unit.into()),
        ..CgroupCreated::default()
    }
}

fn units() -> Vec<Record> {
    let mut records = Vec::new();
    let ecs = || unit("ecs.service");
    for second in (3..300).step_by(11) {
        let run = UnitStarted {
            by: Some(StartedBy::Restart),
            ..UnitStarted::default()
        };
        records.push(told(second, "units", ecs(), &UNIT_STARTED, run));
        if second % 2 == 0 {
            let end = UnitStopped::default();
            records.push(told(second, "units", ecs(), &UNIT_FAILED, end));
        }
        let path = format!("/ecs/task-{second}");
        let born = cgroup(&path, "docker.service", "ecs.service");
        let subject = Subject::new(SubjectKind::Cgroup, path);
        records.push(told(second, "cgroups", subject, &CGROUP_BORN, born));
    }
    let scope = cgroup("/docker", "init.scope", "docker-3f9c0a11de77a0b1.scope");
    let subject = Subject::new(SubjectKind::Cgroup, "/docker");
    records.push(told(250, "cgroups", subject, &CGROUP_BORN, scope));
    let burst = CgroupBurst {
        what: Some(CgroupChange::Created),
        pattern: "/ecs/<n>".into(),
        n: 211,
        ..CgroupBurst::default()
    };
    records.push(told(251, "cgroups", Subject::node(), &CGROUP_BURST, burst));
    let logrotate = UnitStarted {
        n: Some(1),
        ..UnitStarted::default()
    };
    let subject = unit("logrotate.service");
    records.push(told(20, "units", subject, &UNIT_STARTED, logrotate));
    records
}

fn network() -> Vec<Record> {
    let mut records = Vec::new();
    for second in 0..300 {
        let wait = if (230..236).contains(&second) {
            (second - 229) as f64 * 0.7e9
        } else {
            0.0
        };
        records.push(sample(second, "napi", Subject::cpu(3), &NAPI_WAIT_NS, wait));
        records.push(sample(second, "napi", Subject::node(), &NAPI_WAIT_NS, wait));
        records.push(sample(
            second,
            "runq",
            Subject::node(),
            &RUNQ_WAITING_NS,
            wait / 3.0,
        ));
    }
    let starved = NapiDelay {
        what: Some("NET_RX".into()),
        waited_ns: Some(612_000_000),
        holder_comm: Some("telemetryd".into()),
        ..NapiDelay::default()
    };
    records.push(told(230, "napi", Subject::cpu(3), &NAPI_STARVED, starved));
    let eth0 = || Subject::new(SubjectKind::Device, "eth0");
    let line = |class: &str, line: &str| KernelLine {
        class: Some(class.into()),
        line: Some(line.into()),
        ..KernelLine::default()
    };
    let timeout = KernelLine {
        device: Some("eth0".into()),
        ..line(
            "nic_tx_timeout",
            "ena 0000:00:05.0 eth0: Found a Tx that wasn't completed on time, qid 3",
        )
    };
    records.push(told(235, "klog", eth0(), &KLOG_EVENT, timeout));
    let lockup = line(
        "soft_lockup",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [telemetryd:4711]",
    );
    records.push(told(240, "klog", Subject::cpu(3), &KLOG_EVENT, lockup));
    let down = NicLink {
        operstate: Some("down".into()),
        ..NicLink::default()
    };
    records.push(told(236, "nics", eth0(), &NIC_LINK, down));
    records
}

/// What has no panel of its own.
pub(crate) fn other() -> Vec<Record> {
    let mut records = Vec::new();
    for second in 0..300 {
        let wait = if second == 231 { 2.1e9 } else { 3e6 };
        let fact = &RUNQ_DELAY_MAX_NS;
        records.push(sample(second, "runq", Subject::cpu(3), fact, wait));
        let births = &cgroup::CGROUP_BIRTHS;
        let n = 1000.0 + second as f64;
        records.push(sample(second, "cgroups", Subject::node(), births, n));
        let eth0 = Subject::new(SubjectKind::Device, "eth0");
        let resets = if second < 236 { 7.0 } else { 9.0 };
        records.push(sample(second, "nics", eth0, &NIC_RESETS, resets));
    }
    let leaked = &memcg::MEMCG_LEAKED;
    records.push(sample(30, "memcg", Subject::node(), leaked, 23.0));
    let served = NapiDelay {
        waited_ns: Some(4_200_000_000),
        holder_comm: Some("telemetryd".into()),
        ..NapiDelay::default()
    };
    records.push(told(235, "napi", Subject::cpu(3), &NAPI_SERVED, served));
    records
}

/// Containers that come and go, and processes that end badly after the network did.
pub(crate) fn workloads() -> Vec<Record> {
    let mut records = Vec::new();
    let container = |second: u64| Subject::new(SubjectKind::Container, format!("c{second}"));
    for second in (5..300).step_by(13) {
        let image = Some("amazon/amazon-ecs-agent:latest".to_owned());
        let start = ContainerStarted {
            image: image.clone(),
            ..ContainerStarted::default()
        };
        let subject = || container(second);
        let fact = &CONTAINER_STARTED;
        records.push(told(second, "containers", subject(), fact, start));
        if second < 290 {
            let exit = ContainerExited {
                image,
                ..ContainerExited::default()
            };
            let fact = &CONTAINER_EXITED;
            records.push(told(second + 4, "containers", subject(), fact, exit));
        }
    }
    let nameless = ContainerStarted::default();
    let fact = &CONTAINER_STARTED;
    records.push(told(7, "containers", container(1), fact, nameless));
    let process = |pid: u64| Subject::new(SubjectKind::Process, pid.to_string());
    let killed = |comm: &str| ProcessExit {
        comm: Some(comm.into()),
        signal: Some(9),
        ..ProcessExit::default()
    };
    for pid in 0..5 {
        let ray = ProcessExit {
            role: Some("ray".into()),
            ..killed("raylet")
        };
        records.push(told(238, "exits", process(pid), &PROCESS_FAILED, ray));
    }
    let oom = ProcessExit {
        oom: Some(true),
        ..killed("trainer")
    };
    records.push(told(239, "exits", process(9), &PROCESS_FAILED, oom));
    let burst = ProcessBurst {
        comm: Some("sh".into()),
        exit_code: Some(1),
        n: 401,
        ..ProcessBurst::default()
    };
    let fact = &PROCESS_FAILED_BURST;
    records.push(told(239, "exits", Subject::node(), fact, burst));
    records
}

/// Time lost waiting, worst while the core is lost. That of a cgroup is not the node's.
fn pressure() -> Vec<Record> {
    let mut records = Vec::new();
    for second in 0..300 {
        let cpu = if (200..260).contains(&second) {
            0.71
        } else {
            0.13
        };
        for (fact, value) in PRESSURE.into_iter().zip([cpu, 0.0, 0.02]) {
            records.push(sample(second, "pressure", Subject::node(), fact, value));
            let cgroup = Subject::new(SubjectKind::Cgroup, "/ecs");
            records.push(sample(second, "pressure", cgroup, fact, 0.99));
        }
    }
    records
}

/// What the node did not let us see.
pub(crate) fn gaps() -> Vec<Record> {
    let denied = Gap::new(
        "napi",
        Why::Denied,
        "cannot load the program that watches NET_RX: operation not permitted",
    );
    let denied = denied.with_remedy("run sexton as root, or with CAP_BPF and CAP_PERFMON");
    let lost = Gap::new(
        "exits",
        Why::Lost(17),
        "17 exits came faster than they were read",
    );
    let node = Subject::node;
    vec![
        record(1, "napi", node(), Body::Gap(Box::new(denied))),
        record(100, "exits", node(), Body::Gap(Box::new(lost.clone()))),
        record(130, "exits", node(), Body::Gap(Box::new(lost))),
    ]
}

/// A node where all sensors are at work and nothing happens.
pub(crate) fn quiet() -> Vec<Record> {
    let mut records = cores(2);
    for second in 0..300 {
        for sensor in ["units", "cgroups", "napi", "klog", "exits"] {
            let subject = Subject::new(SubjectKind::Sensor, sensor);
            records.push(sample(
                second,
                sensor,
                subject,
                &sexton::SEXTON_POLL_NS,
                1e6,
            ));
        }
        records.push(sample(second, "napi", Subject::node(), &NAPI_WAIT_NS, 0.0));
        records.push(sample(
            second,
            "containers",
            Subject::node(),
            &CONTAINER_RUNNING,
            0.0,
        ));
    }
    records
}

/// Births of cgroups where nothing is known of units.
pub(crate) fn births() -> Vec<Record> {
    let is_birth = |record: &Record| record.sensor == "cgroups";
    units().into_iter().filter(is_birth).collect()
}

/// The whole story, with so many cores, in the order of time.
pub(crate) fn node(n_cores: u32) -> Vec<Record> {
    let mut records = cores(n_cores);
    records.extend(census());
    records.extend(units());
    records.extend(network());
    records.extend(workloads());
    records.extend(pressure());
    records.extend(gaps().split_off(1));
    records.sort_by_key(|record| record.at);
    records
}

/// A live view that has seen these.
pub(crate) fn live(records: &[Record]) -> View {
    let mut view = View::live();
    for batch in records.chunks(997) {
        view.take(batch);
    }
    view
}

/// How long the story is.
pub(crate) const LENGTH: Duration = Duration::from_secs(299);

/// The screen as text, without blanks at the ends of lines.
pub(crate) fn screen(view: &View, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| render(view, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..rows {
        let cells = (0..columns).map(|column| buffer[(column, row)].symbol());
        text.push_str(cells.collect::<String>().trim_end());
        text.push('\n');
    }
    text
}
