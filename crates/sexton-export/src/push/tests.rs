//! A ring with samples of known times, a clock that is moved, and receivers that misbehave.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use prost::Message as _;
use sexton_model::fact::finding::{FINDING_TURN, FindingTurn, TurnKind};
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::stack::{
    CodeKind, CoreState, Frame, FrameId, NameId, StackId, StackNode, StackSample, StackTables,
};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_profile::proto::otlp::ProfilesData;
use sexton_store::{BundleWriter, Limits, Node, Ring};

use super::messages::{LogsData, MetricsData};
use super::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600;
/// What the wall clock said at boot.
const BOOTED: u64 = 1_800_000_000 * SECOND;

fn at(seconds: u64) -> Moment {
    Moment::from_ns(seconds * SECOND)
}

fn now(seconds: f64) -> Now {
    let ns = (seconds * 1e9) as u64;
    Now {
        boot: Moment::from_ns(ns),
        wall_ns: BOOTED + ns,
    }
}

fn node(boot: &str) -> Node {
    Node {
        name: "n1".into(),
        kernel: "6.1".into(),
        boot_id: boot.into(),
    }
}

/// Two stacks in a unit; `n_stacks` of them in all.
fn tables(n_stacks: u32) -> StackTables {
    let names = ["work", "/system.slice/ecs.service", "cpu-clock"];
    let mut names: Vec<Arc<str>> = names.iter().map(|name| (*name).into()).collect();
    let mut tables = StackTables::default();
    for n in 0..n_stacks {
        names.push(format!("function_{n}").into());
        tables.frames.push(Frame {
            kind: CodeKind::User,
            symbol: Some(NameId(3 + n)),
            module: None,
            address: 0,
            is_inlined: false,
        });
        tables.stacks.push(StackNode {
            caller: StackId::EMPTY,
            frame: FrameId(n),
        });
    }
    StackTables { names, ..tables }
}

/// A ring whose boot was recorded from one second to another: in each 5 s, a sample of every
/// stack, with the weight of its second.
fn record(ring: &Ring, boot: &str, seconds: std::ops::Range<u64>, n_stacks: u32) {
    let boot = ring.boot_of(boot).expect("a ring");
    let limits = Limits::ring(1 << 30, Duration::from_secs(7 * 86_400));
    let begin = at(seconds.start);
    let mut writer =
        BundleWriter::create(&boot.records, limits, node(&boot.id), begin).expect("a disk");
    let tables = tables(n_stacks);
    let end = at(seconds.end);
    for second in seconds.step_by(5) {
        let samples: Vec<StackSample> = (0..n_stacks)
            .map(|stack| StackSample {
                at: at(second),
                cpu: 0,
                pid: 7,
                tid: 7,
                comm: NameId(0),
                cgroup: Some(NameId(1)),
                state: CoreState::User,
                event: NameId(2),
                weight: second,
                stack: StackId(stack),
            })
            .collect();
        writer.append_stacks(&samples, &tables).expect("a disk");
        if second % 60 == 0 {
            let mut out = Sink::new("clock", at(second));
            let wall_ns = (BOOTED + second * SECOND) as f64;
            out.sample(&Subject::node(), &SEXTON_WALL_CLOCK_NS, wall_ns);
            writer.append(&out.into_records()).expect("a disk");
            writer.sync(at(second)).expect("a disk");
            writer.seal_if_due(at(second)).expect("a disk");
        }
    }
    writer.finish(end).expect("a disk");
}

fn receiver(encoding: Encoding, signal: Signal, max_age_seconds: u64) -> Receiver {
    Receiver {
        name: "test",
        signal,
        encoding,
        path: "/v1".into(),
        max_age: Duration::from_secs(max_age_seconds),
        headers: Vec::new(),
    }
}

fn channel(folder: &Path, boot: &str, receiver: Receiver, begin: f64) -> Channel {
    let ring = Ring::at(folder);
    let own: OwnFigures = Arc::new(crate::Own::default);
    let source = Source::new(ring.clone(), (boot, "n1"), Arc::default(), own);
    Channel::new(receiver, source, ring.place_of("test"), "1.2.3", now(begin))
}

/// A receiver that answers as a function says, and keeps what it took with the time.
struct Stub<F> {
    answer: F,
    clock: f64,
    asked: Vec<f64>,
    taken: Vec<(f64, Vec<u8>)>,
}

impl<F: FnMut(f64, &Request) -> Reply> Stub<F> {
    fn new(answer: F) -> Self {
        Self {
            answer,
            clock: 0.0,
            asked: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// Runs a channel from one second to another.
    fn run(&mut self, channel: &mut Channel, seconds: std::ops::Range<f64>) {
        self.clock = seconds.start;
        while self.clock < seconds.end {
            match channel.visit(now(self.clock), self) {
                Next::Again => self.clock += 0.05,
                Next::After(time) => self.clock += time.as_secs_f64().clamp(0.01, 15.0),
            }
        }
    }

    /// The profiles that were taken: when each began, in seconds after boot, and its weights.
    fn profiles(&self) -> Vec<(u64, Vec<i64>)> {
        let mut profiles = Vec::new();
        for (_, body) in &self.taken {
            let data = ProfilesData::decode(&body[..]).expect("it is OTLP");
            for resource in data.resource_profiles {
                for profile in &resource.scope_profiles[0].profiles {
                    let began = (profile.time_unix_nano - BOOTED) / SECOND;
                    let values = profile.samples.iter().flat_map(|it| &it.values);
                    profiles.push((began, values.copied().collect()));
                }
            }
        }
        profiles
    }
}

impl<F: FnMut(f64, &Request) -> Reply> Post for Stub<F> {
    fn post(&mut self, request: &Request) -> Reply {
        self.asked.push(self.clock);
        let reply = (self.answer)(self.clock, request);
        if matches!(reply, Reply::Answer { status: 200, .. }) {
            let mut body = Vec::new();
            let mut gzip = GzDecoder::new(&request.body[..]);
            let is_packed = request
                .headers
                .iter()
                .any(|(name, _)| name == "content-encoding");
            match is_packed {
                true => drop(gzip.read_to_end(&mut body).expect("it is gzip")),
                false => body.clone_from(&request.body),
            }
            self.taken.push((self.clock, body));
        }
        reply
    }
}

fn answer(status: u16) -> Reply {
    Reply::Answer {
        status,
        retry_after: None,
        bytes: Vec::new(),
    }
}

fn good(_: f64, _: &Request) -> Reply {
    answer(200)
}

/// What the windows of these seconds hold: of the three samples of each, the sum.
fn expected(seconds: std::ops::Range<u64>) -> Vec<(u64, Vec<i64>)> {
    let window = |begin: u64| (begin, vec![(begin + begin + 5 + begin + 10) as i64]);
    seconds.step_by(15).map(window).collect()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn after_an_hour_without_a_receiver_all_windows_arrive_once_and_in_order() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..5_100, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    // Down from 1,000 s to an hour later.
    let mut stub = Stub::new(
        |clock, _: &Request| match (1_000.0..4_600.0).contains(&clock) {
            true => Reply::Nothing("connection refused".into()),
            false => answer(200),
        },
    );
    stub.run(&mut channel, 900.0..4_599.0);
    let n_asked = stub.asked.len();
    assert!(n_asked < 60, "it asked {n_asked} times");
    let stats = channel.stats();
    assert_eq!(stats.trouble.as_deref(), Some("connection refused"));
    assert!(stats.lag_seconds > 3_000.0, "{stats:?}");
    stub.run(&mut channel, 4_600.0..5_001.0);
    assert_eq!(stub.profiles(), expected(900..4_995));
    let stats = channel.stats();
    assert_eq!(
        (stats.n_dropped, stats.n_refused, &stats.trouble),
        (0, 0, &None)
    );
    assert!(stats.lag_seconds < 30.0, "{stats:?}");
}

#[test]
fn what_is_older_than_the_receiver_takes_is_dropped_and_counted() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..5_100, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 600);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut stub = Stub::new(|clock, _: &Request| match clock < 4_500.0 {
        true => answer(503),
        false => answer(200),
    });
    stub.run(&mut channel, 900.0..5_001.0);
    let profiles = stub.profiles();
    let first = profiles[0].0;
    assert!((3_885..4_100).contains(&first), "{first}");
    assert_eq!(profiles, expected(first..4_995));
    assert_eq!(channel.stats().n_dropped, (first - 900) / 15);
}

#[test]
fn a_restart_goes_on_where_it_was() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_800, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut stub = Stub::new(good);
    for seconds in [(900.0, 1_001.0), (1_200.0, 1_300.0)] {
        let mut channel = channel(folder.path(), "a", receiver.clone(), seconds.0);
        stub.run(&mut channel, seconds.0..seconds.1);
    }
    assert_eq!(stub.profiles(), expected(900..1_290));
}

#[test]
fn a_reboot_ends_one_boot_and_begins_the_next() {
    let folder = folder();
    let ring = Ring::at(folder.path());
    record(&ring, "a", 600..1_200, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut stub = Stub::new(good);
    let mut before = channel(folder.path(), "a", receiver.clone(), 900.0);
    stub.run(&mut before, 900.0..1_000.0);
    drop(before);
    // The node went on for 200 s, was down, and is up again for 60 s. Its clocks: in this test both
    // boots began at the same time, which no rule of the channel looks at.
    record(&ring, "b", 1_500..1_800, 1);
    let mut after = channel(folder.path(), "b", receiver, 1_560.0);
    stub.run(&mut after, 1_560.0..1_701.0);
    let mut all = expected(900..1_200);
    all.extend(expected(1_500..1_695));
    assert_eq!(stub.profiles(), all);
    assert_eq!(after.stats().n_dropped, 0);
}

#[test]
fn a_request_that_is_too_large_is_split_until_it_fits() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_200, 40);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut n_refused = 0;
    let mut stub = Stub::new(|_, request: &Request| {
        let status = if request.plain_bytes > 700 { 413 } else { 200 };
        n_refused += u64::from(status == 413);
        answer(status)
    });
    stub.run(&mut channel, 900.0..966.0);
    let profiles = stub.profiles();
    let taken: usize = profiles.iter().map(|(_, values)| values.len()).sum();
    // Four windows of 40 stacks, in parts, each stack once.
    assert_eq!(taken, 4 * 40);
    assert!(profiles.len() > 8, "{}", profiles.len());
    assert_eq!(channel.stats().n_sent, 4);
    assert_eq!(channel.stats().n_refused, 0);
    assert!(n_refused > 0);
}

#[test]
fn what_cannot_be_made_smaller_is_dropped_and_counted() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_200, 4);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut stub = Stub::new(|_, _: &Request| answer(413));
    stub.run(&mut channel, 900.0..966.0);
    assert_eq!((channel.stats().n_sent, channel.stats().n_refused), (0, 16));
}

#[test]
fn a_receiver_that_finds_everything_too_large_is_not_asked_without_end() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_200, 4_000);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut stub = Stub::new(|_, _: &Request| answer(413));
    stub.run(&mut channel, 900.0..951.0);
    let stats = channel.stats();
    // Three windows.
    assert!(stats.n_requests <= 3 * 9, "{stats:?}");
    assert!(stats.n_refused >= 3 && stats.n_sent == 0, "{stats:?}");
    assert!(stats.trouble.is_some(), "{stats:?}");
}

#[test]
fn a_receiver_that_asks_for_time_gets_it() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_200, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut is_first = true;
    let mut stub = Stub::new(|_, _: &Request| match std::mem::take(&mut is_first) {
        true => Reply::Answer {
            status: 429,
            retry_after: Some(Duration::from_secs(77)),
            bytes: b"slow down".to_vec(),
        },
        false => answer(200),
    });
    stub.run(&mut channel, 900.0..1_101.0);
    assert!(stub.asked[1] - stub.asked[0] >= 77.0, "{:?}", stub.asked);
    assert_eq!(stub.profiles(), expected(900..1_095));
}

#[test]
fn what_is_refused_is_counted_and_the_next_window_is_sent() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_200, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut stub = Stub::new(|clock, _: &Request| match clock < 950.0 {
        true => Reply::Answer {
            status: 400,
            retry_after: None,
            bytes: b"\x1b[31mbad\n".repeat(1_000),
        },
        false => answer(200),
    });
    stub.run(&mut channel, 900.0..950.0);
    let trouble = channel.stats().trouble.clone().expect("it was refused");
    assert!(
        trouble.starts_with("the receiver answered 400: "),
        "{trouble}"
    );
    assert!(
        trouble.len() < 1_000 && !trouble.contains('\x1b'),
        "{trouble}"
    );
    stub.run(&mut channel, 950.0..1_000.0);
    assert_eq!(stub.profiles(), expected(930..990));
    assert_eq!(
        (channel.stats().n_refused, &channel.stats().trouble),
        (2, &None)
    );
}

#[test]
fn what_a_receiver_left_out_is_counted_and_garbage_is_not_believed() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_200, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    // partial_success { rejected: 5, error_message: "no" }, then bytes that are no message.
    let partial = b"\x0a\x06\x08\x05\x12\x02no".to_vec();
    let mut answers = vec![b"\xff\xff\xff<html>".to_vec(), partial];
    let mut stub = Stub::new(|_, _: &Request| Reply::Answer {
        status: 200,
        retry_after: None,
        bytes: answers.pop().unwrap_or_default(),
    });
    stub.run(&mut channel, 900.0..924.0);
    assert_eq!(channel.stats().n_refused, 5);
    let trouble = channel.stats().trouble.clone();
    assert_eq!(
        trouble.as_deref(),
        Some("the receiver left out 5 items: no")
    );
    stub.run(&mut channel, 924.0..1_000.0);
    assert_eq!((channel.stats().n_sent, channel.stats().n_refused), (6, 5));
}

#[test]
fn a_place_that_is_lost_is_said() {
    let folder = folder();
    let ring = Ring::at(folder.path());
    record(&ring, "a", 600..1_200, 1);
    std::fs::create_dir_all(folder.path().join("export")).expect("a folder");
    std::fs::write(folder.path().join("export/test.json"), "{").expect("a file");
    let receiver = receiver(Encoding::Otlp, Signal::Profiles, 6 * HOUR);
    let channel = channel(folder.path(), "a", receiver, 900.0);
    let trouble = channel.stats().trouble.clone().expect("it is said");
    assert!(
        trouble.contains("the place in the ring is lost"),
        "{trouble}"
    );
}

#[test]
fn metrics_have_the_time_of_their_window() {
    let folder = folder();
    record(&Ring::at(folder.path()), "a", 600..1_800, 1);
    let receiver = receiver(Encoding::Otlp, Signal::Metrics, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut stub = Stub::new(|clock, _: &Request| match clock < 1_200.0 {
        true => answer(502),
        false => answer(200),
    });
    stub.run(&mut channel, 900.0..1_400.0);
    let mut times = Vec::new();
    for (_, body) in &stub.taken {
        let data = MetricsData::decode(&body[..]).expect("it is OTLP");
        let metrics = &data.resource_metrics[0].scope_metrics[0].metrics;
        let limit = metrics.iter().find(|it| it.name == "sexton_series_limit");
        let Some(messages::Kind::Gauge(gauge)) = limit.and_then(|it| it.data.as_ref()) else {
            panic!("no gauge in {metrics:?}");
        };
        assert_eq!(gauge.data_points[0].as_double, Some(2_000.0));
        times.push((gauge.data_points[0].time_unix_nano - BOOTED) / SECOND);
    }
    let all: Vec<u64> = (930..=1_380).step_by(30).collect();
    assert_eq!(times, all);
}

#[test]
fn findings_are_sent_as_logs() {
    let folder = folder();
    let ring = Ring::at(folder.path());
    record(&ring, "a", 600..1_200, 1);
    let boot = ring.boot_of("a").expect("a ring");
    let limits = Limits::ring(1 << 24, Duration::from_secs(86_400));
    let mut writer =
        BundleWriter::create(&boot.findings, limits, node("a"), at(600)).expect("a disk");
    let mut out = Sink::new("judge", at(930));
    for (turn, severity) in [
        (TurnKind::Opened, "serious"),
        (TurnKind::Resolved, "serious"),
    ] {
        let says = FindingTurn {
            turn: Some(turn),
            code: "MCG001".into(),
            severity: severity.into(),
            title: "dying memory cgroups pile up".into(),
            ..FindingTurn::default()
        };
        let subject = Subject::new(SubjectKind::Cgroup, "/docker");
        out.event(at(930), &subject, &FINDING_TURN, says);
    }
    writer.append(&out.into_records()).expect("a disk");
    writer.sync(at(931)).expect("a disk");
    let receiver = receiver(Encoding::Otlp, Signal::Logs, 6 * HOUR);
    let mut channel = channel(folder.path(), "a", receiver, 900.0);
    let mut stub = Stub::new(good);
    stub.run(&mut channel, 900.0..1_000.0);
    assert_eq!(stub.taken.len(), 1, "windows without a turn are not sent");
    let data = LogsData::decode(&stub.taken[0].1[..]).expect("it is OTLP");
    let lines = &data.resource_logs[0].scope_logs[0].log_records;
    assert!(lines.iter().map(|line| line.severity_number).eq([17, 9]));
    assert_eq!(lines[0].time_unix_nano, BOOTED + 930 * SECOND);
}
