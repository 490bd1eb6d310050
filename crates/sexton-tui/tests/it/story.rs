//! A node like that of the founding incident, as records. Invented: its figures are
//! chosen so that each can be found on the screen.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use sexton_model::fact::{Fact, FactKind, Unit, core, memcg, sexton};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Detail, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_tui::{View, render};

/// Facts are found by their names, whoever defines them.
const fn fact(name: &'static str, unit: Unit, kind: FactKind) -> Fact {
    let help = "";
    Fact {
        name,
        unit,
        kind,
        help,
    }
}

const fn event(name: &'static str) -> Fact {
    fact(name, Unit::None, FactKind::Event)
}

static NAPI_WAIT_NS: Fact = fact("napi_wait_ns", Unit::Nanoseconds, FactKind::Gauge);
static RUNQ_WAITING_NS: Fact = fact("runq_waiting_ns", Unit::Nanoseconds, FactKind::Gauge);
static NAPI_STARVED: Fact = event("napi_starved");
static UNIT_STARTED: Fact = event("unit_started");
static UNIT_FAILED: Fact = event("unit_failed");
static CGROUP_BORN: Fact = event("cgroup_born");
static CGROUP_BURST: Fact = event("cgroup_burst");
static CONTAINER_STARTED: Fact = event("container_started");
static CONTAINER_EXITED: Fact = event("container_exited");
static CONTAINER_RUNNING: Fact = fact("container_running", Unit::Count, FactKind::Gauge);
static PROCESS_FAILED: Fact = event("process_failed");
static PROCESS_FAILED_BURST: Fact = event("process_failed_burst");
static PRESSURE: [Fact; 3] = [
    fact("pressure_cpu_some_ratio", Unit::Ratio, FactKind::Gauge),
    fact("pressure_memory_some_ratio", Unit::Ratio, FactKind::Gauge),
    fact("pressure_io_some_ratio", Unit::Ratio, FactKind::Gauge),
];
static KLOG_EVENT: Fact = event("klog_event");
static NIC_LINK: Fact = event("nic_link");

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

fn told(
    second: u64,
    sensor: &'static str,
    subject: Subject,
    fact: &'static Fact,
    details: &[(&'static str, &str)],
) -> Record {
    let detail =
        |(key, value): &(&'static str, &str)| -> Detail { ((*key).into(), (*value).to_owned()) };
    let details = details.iter().map(detail).collect();
    record(second, sensor, subject, Body::Event { fact, details })
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

fn units() -> Vec<Record> {
    let mut records = Vec::new();
    for second in (3..300).step_by(11) {
        let name = || unit("ecs.service");
        records.push(told(
            second,
            "units",
            name(),
            &UNIT_STARTED,
            &[("by", "restart")],
        ));
        if second % 2 == 0 {
            records.push(told(second, "units", name(), &UNIT_FAILED, &[]));
        }
        let cgroup = Subject::new(SubjectKind::Cgroup, format!("/ecs/task-{second}"));
        let details = [("creator_unit", "docker.service"), ("unit", "ecs.service")];
        records.push(told(second, "cgroups", cgroup, &CGROUP_BORN, &details));
    }
    let scope = [
        ("creator_unit", "init.scope"),
        ("unit", "docker-3f9c0a11de77a0b1.scope"),
    ];
    let cgroup = Subject::new(SubjectKind::Cgroup, "/docker");
    records.push(told(250, "cgroups", cgroup, &CGROUP_BORN, &scope));
    let burst = [
        ("what", "cgroup_born"),
        ("pattern", "/ecs/<n>"),
        ("n", "211"),
    ];
    records.push(told(251, "cgroups", Subject::node(), &CGROUP_BURST, &burst));
    records.push(told(
        20,
        "units",
        unit("logrotate.service"),
        &UNIT_STARTED,
        &[("n", "1")],
    ));
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
    let starved = [
        ("what", "NET_RX"),
        ("waited_ns", "612000000"),
        ("holder_comm", "telemetryd"),
    ];
    records.push(told(230, "napi", Subject::cpu(3), &NAPI_STARVED, &starved));
    let eth0 = || Subject::new(SubjectKind::Device, "eth0");
    let timeout = [
        ("class", "nic_tx_timeout"),
        ("device", "eth0"),
        (
            "line",
            "ena 0000:00:05.0 eth0: Found a Tx that wasn't completed on time, qid 3",
        ),
    ];
    records.push(told(235, "klog", eth0(), &KLOG_EVENT, &timeout));
    let lockup = [
        ("class", "soft_lockup"),
        (
            "line",
            "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [telemetryd:4711]",
        ),
    ];
    records.push(told(240, "klog", Subject::cpu(3), &KLOG_EVENT, &lockup));
    records.push(told(
        236,
        "nics",
        eth0(),
        &NIC_LINK,
        &[("operstate", "down")],
    ));
    records
}

/// Containers that come and go, and processes that end badly after the network did.
pub(crate) fn workloads() -> Vec<Record> {
    let mut records = Vec::new();
    let container = |second: u64| Subject::new(SubjectKind::Container, format!("c{second}"));
    for second in (5..300).step_by(13) {
        let image = [("image", "amazon/amazon-ecs-agent:latest")];
        let began = told(
            second,
            "containers",
            container(second),
            &CONTAINER_STARTED,
            &image,
        );
        records.push(began);
        if second < 290 {
            let ended = told(
                second + 4,
                "containers",
                container(second),
                &CONTAINER_EXITED,
                &image,
            );
            records.push(ended);
        }
    }
    records.push(told(7, "containers", container(1), &CONTAINER_STARTED, &[]));
    let process = |pid: u64| Subject::new(SubjectKind::Process, pid.to_string());
    for pid in 0..5 {
        let ray = [("comm", "raylet"), ("signal", "9"), ("role", "ray")];
        records.push(told(238, "exits", process(pid), &PROCESS_FAILED, &ray));
    }
    let oom = [("comm", "trainer"), ("signal", "9"), ("oom", "true")];
    records.push(told(239, "exits", process(9), &PROCESS_FAILED, &oom));
    let burst = [("comm", "sh"), ("exit_code", "1"), ("n", "401")];
    records.push(told(
        239,
        "exits",
        Subject::node(),
        &PROCESS_FAILED_BURST,
        &burst,
    ));
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
        for (fact, value) in PRESSURE.iter().zip([cpu, 0.0, 0.02]) {
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
        record(1, "napi", node(), Body::Gap(denied)),
        record(100, "exits", node(), Body::Gap(lost.clone())),
        record(130, "exits", node(), Body::Gap(lost)),
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
