//! Starts, stops and failures of units of a real systemd are seen, each of them, and
//! nothing is seen where nothing happened.

use std::time::Duration;

use serde_json::Value;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::systemd::Systemd;

const DUMP: &str = env!("CARGO_BIN_EXE_sensor-dump");

const LOOP: &str = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=100ms\nExecStart=/bin/false\n";
const ONESHOT: &str = "[Service]\nType=oneshot\nExecStart=/bin/true\n";

const UNITS: [(&str, &str); 7] = [
    ("looper.service", LOOP),
    ("early.service", LOOP),
    (
        "quiet.service",
        "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
    ),
    ("byhand.service", ONESHOT),
    ("ticked.service", ONESHOT),
    (
        "tick.timer",
        "[Timer]\nOnActiveSec=1s\nAccuracySec=10ms\nUnit=ticked.service\n",
    ),
    (
        "fails.service",
        "[Service]\nExecStart=/bin/sh -c \"exit 7\"\n",
    ),
];

/// Two units run before the sensor looks; the others begin under its eyes.
const JOB: &str = r#"
systemctl start quiet.service early.service
sleep 1
systemctl show --value -p NRestarts early.service > early.before
./sensor-dump units 15 500 > records &
for i in $(seq 100); do grep -q '"units"' records && break; sleep 0.1; done
systemctl start --no-block looper.service
systemctl start tick.timer
systemctl start fails.service
for i in 1 2 3 4 5 6 7; do systemctl start byhand.service; sleep 0.1; done
for i in $(seq 100); do grep -q '"fact":"unit_seen".*"quiet.service"' records && break; sleep 0.1; done
systemctl enable quiet.service
sleep 3
systemctl show --value -p NRestarts byhand.service > byhand.after
systemctl show --value -p NRestarts looper.service > looper.after
systemctl show --value -p NRestarts early.service > early.after
systemctl stop looper.service early.service
wait
"#;

struct Seen(Vec<Value>);

impl Seen {
    /// What the job has recorded.
    fn by(systemd: &Systemd) -> Self {
        let records = systemd.read("records").expect("records");
        let lines = records.lines().map(serde_json::from_str);
        Self(lines.collect::<Result<_, _>>().expect("lines of JSON"))
    }

    fn gaps(&self) -> Vec<&Value> {
        let gaps = self.0.iter().filter(|line| line["gap"].is_string());
        gaps.collect()
    }

    fn of<'s>(&'s self, fact: &'s str, unit: &'s str) -> impl Iterator<Item = &'s Value> {
        let is_it = move |line: &&Value| line["fact"] == fact && line["name"] == unit;
        self.0.iter().filter(is_it)
    }

    fn n(&self, fact: &str, unit: &str) -> u64 {
        self.of(fact, unit).count() as u64
    }

    fn starts(&self, unit: &str) -> u64 {
        let samples = self.of("unit_starts", unit);
        samples
            .filter_map(|line| line["value"].as_f64())
            .sum::<f64>() as u64
    }

    fn field(&self, fact: &str, unit: &str, key: &str) -> String {
        let event = self.of(fact, unit).last();
        match event.map(|event| &event["says"][key]) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

fn number(systemd: &Systemd, name: &str) -> u64 {
    let text = systemd.read(name).expect("systemd was asked");
    text.trim().parse().expect("a number")
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn every_start_is_seen_whoever_causes_it() {
    require(Need::Systemd);
    let systemd = Systemd::run(&UNITS, &[DUMP], JOB, Duration::from_secs(90)).expect("a run");
    let seen = Seen::by(&systemd);
    assert_eq!(seen.gaps(), Vec::<&Value>::new());

    // One start by hand, then restarts; the last reading and the stop may be one apart.
    let restarts = number(&systemd, "looper.after");
    assert!(restarts > 5, "it should loop: {restarts}");
    let starts = seen.starts("looper.service");
    assert!(
        (restarts + 1..=restarts + 2).contains(&starts),
        "{starts} starts, {restarts} restarts"
    );
    let growth = number(&systemd, "early.after") - number(&systemd, "early.before");
    let starts = seen.starts("early.service");
    assert!(
        starts.abs_diff(growth) <= 1,
        "{starts} starts, NRestarts grew by {growth}"
    );
    assert!(
        seen.n("unit_stopped", "looper.service")
            .abs_diff(seen.starts("looper.service"))
            <= 1
    );
    // Restarts are no failures; but to be stopped in the midst of a run, by us, is one.
    let stopped_badly = ["looper.service", "early.service"].map(|unit| seen.n("unit_failed", unit));
    assert!(stopped_badly.iter().all(|n| *n <= 1), "{stopped_badly:?}");

    assert_eq!(seen.starts("byhand.service"), 7);
    assert_eq!(seen.n("unit_stopped", "byhand.service"), 7);
    assert_eq!(number(&systemd, "byhand.after"), 0);
    assert_eq!(seen.starts("ticked.service"), 1);
    assert_eq!(
        seen.field("unit_seen", "ticked.service", "triggered_by"),
        "tick.timer"
    );

    assert_eq!(seen.n("unit_failed", "fails.service"), 1);
    assert_eq!(
        seen.field("unit_failed", "fails.service", "exit_status"),
        "7"
    );
    assert_eq!(seen.n("unit_stopped", "fails.service"), 1);

    assert_eq!(seen.starts("quiet.service"), 0);
    assert_eq!(seen.n("unit_stopped", "quiet.service"), 0);
    assert_eq!(
        seen.field("unit_changed", "quiet.service", "enabled"),
        "enabled"
    );
    assert_eq!(
        seen.field("unit_changed", "quiet.service", "was"),
        r#"[{"name":"enabled","value":"disabled"}]"#
    );

    let failed = seen
        .of("units_failed", "")
        .last()
        .map(|line| &line["value"]);
    let expected = 1 + stopped_badly.iter().sum::<u64>();
    assert_eq!(failed.and_then(Value::as_f64), Some(expected as f64));
    let settings = ["restart_ns", "start_limit_interval_ns"];
    let settings = settings.map(|key| seen.field("unit_seen", "early.service", key));
    assert_eq!(settings, ["100000000", "0"]);
}

/// An empty file in place of a unit is a mask.
const NO_BUS: [(&str, &str); 3] = [
    ("dbus.service", ""),
    ("dbus.socket", ""),
    ("byhand.service", ONESHOT),
];

const JOB_WITHOUT_BUS: &str = r#"
test ! -e /run/dbus/system_bus_socket
./sensor-dump units 6 500 > records &
for i in $(seq 100); do grep -q '"units"' records && break; sleep 0.1; done
for i in 1 2 3 4 5; do systemctl start byhand.service; sleep 0.1; done
wait
"#;

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn without_a_bus_systemd_is_asked_itself() {
    require(Need::Systemd);
    let limit = Duration::from_secs(60);
    let systemd = Systemd::run(&NO_BUS, &[DUMP], JOB_WITHOUT_BUS, limit).expect("a run");
    let seen = Seen::by(&systemd);
    assert_eq!(seen.gaps(), Vec::<&Value>::new());
    assert_eq!(seen.starts("byhand.service"), 5, "{:#?}", seen.0);
    assert_eq!(seen.n("unit_stopped", "byhand.service"), 5);
}

const KNOCKED: [(&str, &str); 3] = [
    (
        "knock.socket",
        "[Socket]\nListenStream=/run/knock\nService=knocked.service\nFlushPending=yes\n",
    ),
    ("knocked.service", ONESHOT),
    ("byhand.service", ONESHOT),
];

/// systemd takes itself for a new one in the midst of it: its connections break off.
const JOB_ANEW: &str = r#"
systemctl start knock.socket
BEFORE
./sensor-dump units 20 500 > records &
for i in $(seq 100); do grep -q '"units"' records && break; sleep 0.1; done
for i in 1 2 3; do systemctl start byhand.service; sleep 0.1; done
for i in 1 2; do curl -s -m 3 --unix-socket /run/knock http://knock/ || true; sleep 0.5; done
systemctl daemon-reexec
sleep 4
for i in 1 2 3 4; do systemctl start byhand.service; sleep 0.1; done
for i in 1 2 3; do curl -s -m 3 --unix-socket /run/knock http://knock/ || true; sleep 0.5; done
wait
"#;

/// No start is lost, and that something might have been is told once. Gives back the gap.
fn check_anew(units: &[(&str, &str)], before: &str) -> Value {
    require(Need::Systemd);
    let job = JOB_ANEW.replace("BEFORE", before);
    let limit = Duration::from_secs(90);
    let systemd = Systemd::run(units, &[DUMP], &job, limit).expect("a run");
    let seen = Seen::by(&systemd);
    assert_eq!(seen.starts("byhand.service"), 7, "{:#?}", seen.gaps());
    assert_eq!(seen.starts("knocked.service"), 5, "{:#?}", seen.gaps());
    assert_eq!(
        seen.field("unit_seen", "knocked.service", "triggered_by"),
        "knock.socket"
    );
    let gaps = seen.gaps();
    let [gap] = gaps[..] else { panic!("{gaps:#?}") };
    gap.clone()
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn starts_by_a_socket_are_seen_also_after_systemd_begins_anew() {
    let gap = check_anew(&KNOCKED, "");
    assert_eq!(gap["text"], "systemd left the bus");
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn a_private_connection_that_breaks_off_is_made_again() {
    let units: Vec<_> = NO_BUS[..2].iter().chain(&KNOCKED).copied().collect();
    check_anew(&units, "test ! -e /run/dbus/system_bus_socket");
}

/// The system's own systemd listens where the manager of another user should.
const IMPOSTOR: [(&str, &str); 2] = [
    (
        "impostor.socket",
        "[Socket]\nListenStream=/run/user/1008/systemd/private\nService=impostor.service\n",
    ),
    (
        "impostor.service",
        "[Service]\nExecStart=/bin/sleep infinity\n",
    ),
];

const JOB_OF_A_USER: &str = r#"
useradd -u 1007 -m -s /bin/sh agent
place=$(getent passwd agent | cut -d: -f6)/.config/systemd/user
mkdir -p $place/default.target.wants
printf '[Service]\nExecStart=/bin/sleep infinity\n' > $place/quiet.service
printf '[Service]\nType=oneshot\nExecStart=/bin/true\n' > $place/byhand.service
ln -s ../quiet.service $place/default.target.wants/
systemctl start impostor.socket
loginctl enable-linger agent
./sensor-dump units 15 500 > records &
for i in $(seq 100); do grep -q 'user@1007.service/quiet.service' records && break; sleep 0.1; done
for i in 1 2 3; do
    setpriv --reuid=1007 --regid=1007 --clear-groups env XDG_RUNTIME_DIR=/run/user/1007 \
        systemctl --user start byhand.service
    sleep 0.1
done
wait
"#;

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn the_manager_of_a_user_is_asked_and_nothing_else_in_its_place() {
    require(Need::Systemd);
    let limit = Duration::from_secs(60);
    let systemd = Systemd::run(&IMPOSTOR, &[DUMP], JOB_OF_A_USER, limit).expect("a run");
    let seen = Seen::by(&systemd);
    let byhand = "user@1007.service/byhand.service";
    assert_eq!(seen.starts(byhand), 3, "{:#?}", seen.0);
    assert_eq!(seen.n("unit_stopped", byhand), 3);
    let texts: Vec<&str> = seen
        .gaps()
        .iter()
        .filter_map(|gap| gap["text"].as_str())
        .collect();
    assert!(!texts.is_empty());
    for text in texts {
        assert!(text.contains("not served by user 1008"), "{text}");
    }
}
