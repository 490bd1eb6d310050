//! What is sent to receivers, over HTTP, to one that decodes OTLP with OpenTelemetry's own library
//! and holds Pyroscope's and Parca's limits against the rest.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sexton_export::push::{
    Channel, Encoding, Now, OwnFigures, Owners, Pusher, Receiver, Settings, Signal, Source, Stats,
};
use sexton_http::{Identity, Part, Server, Trust};
use sexton_model::fact::finding::{FINDING_TURN, FindingTurn, TurnKind};
use sexton_model::fact::memcg::MEMCG_DYING;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::stack::{
    CodeKind, CoreState, Frame, FrameId, NameId, StackId, StackNode, StackSample, StackTables,
};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_store::{BundleWriter, Limits, Node, Place, Ring};
use sexton_testkit::TempTree;

use crate::profile::prepared;

const SECOND: u64 = 1_000_000_000;
/// What the wall clock said at boot, and how long ago that was.
const BOOTED: u64 = 1_800_000_000 * SECOND;
const UP: u64 = 1_060;

fn now() -> Now {
    Now {
        boot: at(UP),
        wall_ns: BOOTED + UP * SECOND,
    }
}

fn at(seconds: u64) -> Moment {
    Moment::from_ns(seconds * SECOND)
}

/// A receiver that is gone at the end of a test.
struct Strict {
    child: Child,
    said: BufReader<ChildStdout>,
    port: u16,
}

impl Strict {
    fn start() -> Self {
        let python = prepared("python", "python/bin/python");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/export/receiver.py");
        let seconds = (now().wall_ns / SECOND).to_string();
        let child = Command::new(python)
            .args([script, &seconds])
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("python");
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it says its port");
        let port = line.trim().parse().expect("a port");
        Self { child, said, port }
    }

    /// The next request, as it understood it.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it says what came");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(said["status"], 200, "{said}");
        said
    }

    fn server(&self, token: &std::path::Path) -> Server {
        Server {
            host: "127.0.0.1".into(),
            port: self.port,
            trust: Trust::Plain,
            server_name: None,
            identity: Identity::Token(Part::File(token.to_owned())),
        }
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node() -> Node {
    Node {
        name: "n1".into(),
        kernel: "6.1".into(),
        boot_id: "0f1e".into(),
    }
}

/// A stack of this number of frames, in a unit and in none.
fn tables(depth: u32) -> StackTables {
    let names = ["work", "/system.slice/ecs.service", "cpu-clock", "main"];
    let frame = Frame {
        kind: CodeKind::User,
        symbol: Some(NameId(3)),
        module: Some(NameId(0)),
        address: 0x40,
        is_inlined: false,
    };
    let stacks = (0..depth).map(|n| StackNode {
        caller: n.checked_sub(1).map_or(StackId::EMPTY, StackId),
        frame: FrameId(0),
    });
    StackTables {
        names: names.iter().map(|name| (*name).into()).collect(),
        frames: vec![frame],
        stacks: stacks.collect(),
    }
}

/// A ring from 1,000 s to 1,060 s after boot.
fn record(ring: &Ring, depth: u32) {
    let boot = ring.boot_of("0f1e").expect("a ring");
    let limits = Limits::ring(1 << 28, Duration::from_secs(86_400));
    let mut writer =
        BundleWriter::create(&boot.records, limits, node(), at(1_000)).expect("a disk");
    let tables = tables(depth);
    for second in 1_000..UP {
        let sample = |cgroup: Option<NameId>| StackSample {
            at: at(second),
            cpu: 0,
            pid: 7,
            tid: 7,
            comm: NameId(0),
            cgroup,
            state: CoreState::User,
            event: NameId(2),
            weight: 10_000,
            stack: StackId(depth - 1),
        };
        let samples = [sample(Some(NameId(1))), sample(None)];
        writer.append_stacks(&samples, &tables).expect("a disk");
        let mut out = Sink::new("memcg", at(second));
        out.sample(&Subject::node(), &MEMCG_DYING, second as f64);
        writer.append(&out.into_records()).expect("a disk");
    }
    writer.sync(at(UP)).expect("a disk");
    let mut writer =
        BundleWriter::create(&boot.findings, limits, node(), at(1_000)).expect("a disk");
    let mut out = Sink::new("judge", at(1_020));
    let says = FindingTurn {
        turn: Some(TurnKind::Opened),
        code: "MCG001".into(),
        severity: "serious".into(),
        title: "dying memory cgroups pile up".into(),
        ..FindingTurn::default()
    };
    let subject = Subject::new(SubjectKind::Cgroup, "/docker");
    out.event(at(1_020), &subject, &FINDING_TURN, says);
    writer.append(&out.into_records()).expect("a disk");
    writer.sync(at(UP)).expect("a disk");
}

fn receiver(name: &'static str, signal: Signal, encoding: Encoding, path: &str) -> Receiver {
    Receiver {
        name,
        signal,
        encoding,
        path: path.into(),
        max_age: Duration::from_secs(3_000),
        headers: vec![("x-tenant".into(), "a".into())],
    }
}

/// Sends to a strict receiver what the ring holds since 1,005 s, until all of it was taken.
fn send(strict: &Strict, ring: &Ring, token: &std::path::Path, receivers: Vec<Receiver>) -> Pusher {
    let own: OwnFigures = Arc::new(sexton_export::Own::default);
    let n = receivers.len();
    let channels = receivers.into_iter().map(|receiver| {
        let file = ring.place_of(receiver.name);
        file.write(&Place::new("0f1e", at(1_005))).expect("a disk");
        let owners = Arc::new(std::sync::Mutex::new(Owners::default()));
        let source = Source::new(ring.clone(), ("0f1e", "n1"), owners, Arc::clone(&own));
        Channel::new(receiver, source, file, "1.2.3", now())
    });
    let settings = Settings {
        server: strict.server(token),
        channels: channels.collect(),
        version: "1.2.3",
        now,
        pace: Arc::default(),
    };
    let pusher = Pusher::start(settings, Box::new(|_, _| ())).expect("a thread");
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_done = |stats: &[Stats]| stats.len() == n && stats.iter().all(|it| it.n_sent > 0);
    while !is_done(&pusher.stats()) {
        assert!(Instant::now() < deadline, "{:?}", pusher.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    pusher
}

struct Sent {
    _tree: TempTree,
    strict: Strict,
    pusher: Pusher,
}

fn sent(depth: u32, receivers: Vec<Receiver>) -> Sent {
    let tree = TempTree::new();
    let token = tree.path().join("token");
    std::fs::write(&token, "open-sesame\n").expect("a file");
    let ring = Ring::at(tree.path());
    record(&ring, depth);
    let strict = Strict::start();
    let pusher = send(&strict, &ring, &token, receivers);
    Sent {
        _tree: tree,
        strict,
        pusher,
    }
}

#[test]
fn otlp_is_understood_by_the_library_of_opentelemetry() {
    let otlp = Encoding::Otlp;
    let mut sent = sent(
        3,
        vec![
            receiver("otlp-metrics", Signal::Metrics, otlp, "/v1/metrics"),
            receiver("otlp-logs", Signal::Logs, otlp, "/v1/logs"),
            receiver(
                "otlp-profiles",
                Signal::Profiles,
                otlp,
                "/v1development/profiles",
            ),
        ],
    );
    let (mut metrics, mut lines, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
    while metrics.is_empty() || lines.is_empty() || profiles.len() < 3 {
        let mut said = sent.strict.next();
        match said["path"].as_str() {
            Some("/v1/metrics") => metrics.push(said["metrics"].take()),
            Some("/v1/logs") => lines.push(said["lines"].take()),
            _ => profiles.push(said["profiles"].take()),
        }
    }
    let dying = &metrics[0]["sexton_memcg_dying"];
    assert_eq!(
        (&dying["kind"], &dying["points"]),
        (&"gauge".into(), &1.into())
    );
    assert_eq!(dying["time"], BOOTED + 1_020 * SECOND);
    let line = &lines[0][0];
    assert_eq!(line["severity"], 17);
    assert_eq!(line["sexton.code"], "MCG001");
    assert_eq!(line["body"], "dying memory cgroups pile up");
    // Windows of 15 s: one sample in each second of each of two owners.
    for (n, window) in profiles.iter().take(3).enumerate() {
        let profiles = window.as_array().expect("a list");
        assert_eq!(profiles.len(), 2, "{window}");
        for profile in profiles {
            assert_eq!(profile["kind"], serde_json::json!(["cpu", "nanoseconds"]));
            assert_eq!(profile["time"], BOOTED + (1_005 + 15 * n as u64) * SECOND);
            assert_eq!(profile["stacks"]["main;main;main"], 150_000);
            assert_eq!(profile["labels"]["host.name"], "n1");
        }
        let units = profiles.iter().map(|it| &it["labels"]["systemd.unit"]);
        assert_eq!(units.filter(|it| *it == "ecs.service").count(), 1);
    }
    assert!(sent.pusher.stats().iter().all(|it| it.n_refused == 0));
}

#[test]
fn pyroscope_and_parca_get_what_is_within_their_limits() {
    for (encoding, path, depth) in [
        (Encoding::Pyroscope, "/push.v1.PusherService/Push", 1_000),
        (Encoding::Parca, "/api/profiles/writeraw", 1_024),
    ] {
        let name = "profiles";
        let receivers = vec![receiver(name, Signal::Profiles, encoding, path)];
        let mut sent = sent(1_200, receivers);
        let said = sent.strict.next();
        let profiles = said["profiles"].as_array().expect("a list");
        assert_eq!(profiles.len(), 2, "{path}");
        for profile in profiles {
            assert_eq!(profile["kind"], serde_json::json!(["cpu", "nanoseconds"]));
            assert_eq!(profile["time"], BOOTED + 1_005 * SECOND);
            assert_eq!(profile["labels"]["node"], "n1");
            // Stacks are cut to what Pyroscope takes; a bundle has none over 1,024 frames.
            let stacks = profile["stacks"].as_object().expect("stacks");
            let (stack, value) = stacks.iter().next().expect("one stack");
            assert_eq!(stack.split(';').count(), depth, "{path}");
            assert_eq!(value, 150_000);
        }
        let stats = sent.pusher.stats();
        let is_cut = encoding == Encoding::Pyroscope;
        assert_eq!(stats[0].n_cut > 0, is_cut, "{stats:?}");
        assert_eq!(stats[0].n_refused, 0, "{stats:?}");
    }
}

#[test]
fn a_token_that_is_wrong_costs_time_and_no_data() {
    let tree = TempTree::new();
    let token = tree.path().join("token");
    std::fs::write(&token, "guess\n").expect("a file");
    let ring = Ring::at(tree.path());
    record(&ring, 3);
    let mut strict = Strict::start();
    let path = "/api/profiles/writeraw";
    let receiver = receiver("parca", Signal::Profiles, Encoding::Parca, path);
    let sending = {
        let server = strict.server(&token);
        let own: OwnFigures = Arc::new(sexton_export::Own::default);
        let file = ring.place_of("parca");
        file.write(&Place::new("0f1e", at(1_005))).expect("a disk");
        let source = Source::new(ring.clone(), ("0f1e", "n1"), Arc::default(), own);
        let channels = vec![Channel::new(receiver, source, file, "1.2.3", now())];
        let settings = Settings {
            server,
            channels,
            version: "1.2.3",
            now,
            pace: Arc::default(),
        };
        Pusher::start(settings, Box::new(|_, _| ())).expect("a thread")
    };
    let mut line = String::new();
    strict.said.read_line(&mut line).expect("it was asked");
    assert!(line.contains("\"status\": 401"), "{line}");
    let deadline = Instant::now() + Duration::from_secs(30);
    while sending
        .stats()
        .first()
        .is_none_or(|it| it.trouble.is_none())
    {
        assert!(Instant::now() < deadline, "{:?}", sending.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    let stats = &sending.stats()[0];
    let trouble = stats.trouble.as_deref();
    assert_eq!(trouble, Some("the receiver answered 401: who are you"));
    assert_eq!((stats.n_refused, stats.n_dropped), (0, 0));
}
