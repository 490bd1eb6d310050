//! The sensor against daemons that are threads of the test. What they say was captured
//! from Docker 20.10 and Podman 4.3 (`fixtures/*/api-*`); what is made up says so.

use std::time::{Duration, Instant};

use sexton_model::fact::Fact;
use sexton_model::record::{Body, Event, Record};

use sexton_runtimes::examine;
use sexton_testkit::daemon::{self, FakeDaemon, Reply, captured, node};

use super::*;

/// When the captures began and when they were over.
const BEFORE_CAPTURES: fn() -> u64 = || 1_794_768_000_000_000_000;
const AFTER_CAPTURES: fn() -> u64 = || 1_794_768_070_000_000_000;

/// Patient with daemons that are well: the machine of the test may be busy.
const BRISK: Pace = Pace {
    answer: Duration::from_secs(10),
    tick: Duration::from_millis(10),
    silence: Duration::from_millis(50),
};

/// For daemons that are to be given up.
const HASTY: Pace = Pace {
    answer: Duration::from_millis(200),
    ..BRISK
};

/// Polls at that second until it has said `enough`, and gives back all it said.
fn poll(
    sensor: &mut Containers,
    host: &Host,
    second: u64,
    enough: impl Fn(&[Record]) -> bool,
) -> Vec<Record> {
    let mut records = Vec::new();
    let until = Instant::now() + Duration::from_secs(20);
    while !enough(&records) {
        assert!(Instant::now() < until, "it says only {:#?}", show(&records));
        records.extend(once(sensor, host, second));
        std::thread::sleep(Duration::from_millis(5));
    }
    records
}

fn once(sensor: &mut Containers, host: &Host, second: u64) -> Vec<Record> {
    let mut out = Sink::new(NAME, Moment::from_ns(second * 1_000_000_000));
    let began = Instant::now();
    sensor.poll(host, &mut out);
    assert!(began.elapsed() < Duration::from_secs(1), "a poll waited");
    out.into_records()
}

fn show(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| match &record.body {
        Body::Sample { fact, value } => format!("{} {} {value}", fact.name, record.subject),
        Body::Event { .. } => event(record),
        Body::Gap(gap) => format!("gap {}: {}", gap.why, gap.text),
    };
    records.iter().map(line).collect()
}

fn event(record: &Record) -> String {
    let shown = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    if let Some(started) = record.says(&fact::CONTAINER_STARTED) {
        return format!("started {}", shown(started.name.clone()));
    }
    let exited = record.says(&fact::CONTAINER_EXITED).expect("the other one");
    let values = [
        exited.name.clone(),
        exited.exit_code.map(|code| code.to_string()),
        exited.oom.map(|oom| oom.name().to_owned()),
        exited.lifetime_ms.map(|ms| ms.to_string()),
    ];
    format!("exited {}", values.map(shown).join(" "))
}

fn events(records: &[Record]) -> Vec<String> {
    let mut lines = show(records);
    lines.retain(|line| line.starts_with("started") || line.starts_with("exited"));
    lines
}

fn gaps(records: &[Record]) -> Vec<String> {
    let mut lines = show(records);
    lines.retain(|line| line.starts_with("gap"));
    lines
}

fn has_gap(text: &'static str) -> impl Fn(&[Record]) -> bool {
    move |records| gaps(records).iter().any(|line| line.contains(text))
}

fn has_samples(records: &[Record]) -> bool {
    values(records, &fact::CONTAINER_RUNNING).len() > 3
}

fn values(records: &[Record], fact: &Fact) -> Vec<f64> {
    let samples = records.iter().filter(|record| record.fact() == Some(fact));
    samples.filter_map(Record::value).collect()
}

/// A daemon with an empty past, this list and this stream.
fn with(list: Vec<u8>, stream: Vec<u8>) -> impl Fn(&str) -> Reply + Send + 'static {
    move |target| match target {
        _ if target.contains("until=") => Reply::End(daemon::events(&[])),
        _ if target.starts_with("/events") => Reply::Hold(stream.clone()),
        _ if target.starts_with("/containers") => Reply::End(list.clone()),
        _ => Reply::End(daemon::answer("OK")),
    }
}

/// What a daemon that answers everything so leaves as its first gap.
fn check_gap(pace: Pace, reply: Reply, expected: &'static str) {
    let daemon = FakeDaemon::start(move |_| reply.clone());
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    let mut sensor = Containers::new(pace, BEFORE_CAPTURES);
    let records = poll(&mut sensor, &host, 100, |records| !gaps(records).is_empty());
    let gaps = gaps(&records);
    assert!(gaps[0].contains(expected), "{gaps:#?}");
    assert!(values(&records, &fact::CONTAINER_RUNNING).is_empty());
}

#[test]
fn docker_tells_of_every_life() {
    let past = captured("api-docker", "events.http");
    let list = captured("api-docker", "list.http");
    // The stream tells all of the past again, as one that overlaps does, and has no end.
    let stream = past
        .strip_suffix(b"0\r\n\r\n")
        .expect("a last chunk")
        .to_vec();
    let daemon = FakeDaemon::start(move |target| match target {
        _ if target.contains("until=") => Reply::End(past.clone()),
        _ if target.starts_with("/events") => Reply::Hold(stream.clone()),
        _ => Reply::End(list.clone()),
    });
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    let mut sensor = Containers::new(BRISK, BEFORE_CAPTURES);
    let mut records = poll(&mut sensor, &host, 100, has_samples);
    daemon.wait_for("/_ping");
    records.extend(poll(&mut sensor, &host, 105, has_samples));
    let expected = [
        "started runner",
        "started old",
        "exited old 3 no 39",
        "started quick",
        "exited quick 0 no 28",
        "started fails",
        "exited fails 17 no 1022",
        "started eater",
        "exited eater 137 unknown 199",
        "started killed",
        "exited killed 137 no 106",
        "exited runner 137 no 4071",
        "started runner",
    ];
    let told = events(&records);
    assert_eq!(told[..expected.len()], expected);
    assert_eq!(told.len(), 19, "each once: {told:#?}");
    let births: f64 = values(&records, &fact::CONTAINER_BIRTHS).iter().sum();
    assert_eq!(births, 10.0);
    assert_eq!(
        values(&records, &fact::CONTAINER_RUNNING).last(),
        Some(&1.0)
    );
    assert_eq!(values(&records, &fact::CONTAINER_YOUNG).last(), Some(&1.0));
    assert_eq!(gaps(&records), [""; 0]);
    check_pod(&records);
}

fn check_pod(records: &[Record]) {
    let mut started = records
        .iter()
        .filter_map(|record| record.says(&fact::CONTAINER_STARTED));
    let pod = started.find(|started| started.name.as_deref() == Some("fails"));
    let pod = pod.expect("it was told");
    let found = [
        &pod.image,
        &pod.runtime,
        &pod.pod,
        &pod.pod_namespace,
        &pod.pod_uid,
    ];
    let expected = [
        "ecs-agent:latest",
        "docker",
        "train-0",
        "ml",
        "0a1b2c3d-1111-2222-3333-444455556666",
    ];
    assert_eq!(found.map(|text| text.as_deref()), expected.map(Some));
    assert_eq!(pod.before_open, Some(false));
}

#[test]
fn podman_tells_of_every_life() {
    let list = captured("api-podman", "list.http");
    let daemon = FakeDaemon::start(with(list, captured("api-podman", "events.http")));
    let host = node(&[("/run/podman/podman.sock", daemon.socket())], &["podman"]);
    let mut sensor = Containers::new(BRISK, AFTER_CAPTURES);
    let records = poll(&mut sensor, &host, 100, |records| {
        events(records).len() >= 8
    });
    let expected = [
        "started runner",
        "started quick",
        "exited quick 0 no 3",
        "started fails",
        "exited fails 17 no 1003",
        "started eater",
        "exited eater 137 unknown 299",
        "exited runner 137 unknown 3705",
    ];
    assert_eq!(events(&records), expected);
    let mut started = records
        .iter()
        .filter_map(|record| Event::of(record, &fact::CONTAINER_STARTED));
    let runner = started.next().expect("it was told");
    assert_eq!(runner.says.compose_project.as_deref(), Some("shop"));
    assert_eq!(runner.says.before_open, Some(true));
    // 70 s after the captures began and ten after they were over.
    assert_eq!(runner.at, Moment::from_ns(100_000_000_000 - 10_386_450_196));
    let births: f64 = values(&records, &fact::CONTAINER_BIRTHS).iter().sum();
    assert_eq!(births, 0.0);
}

#[test]
fn two_runtimes_are_heard_at_once() {
    let stream = |runtime: &str| with(captured(runtime, "list.http"), daemon::events(&[]));
    let docker = FakeDaemon::start(stream("api-docker"));
    let podman = FakeDaemon::start(stream("api-podman"));
    let sockets = [
        ("/var/run/docker.sock", docker.socket()),
        ("/run/podman/podman.sock", podman.socket()),
    ];
    let host = node(&sockets, &["dockerd", "podman"]);
    let mut sensor = Containers::new(BRISK, AFTER_CAPTURES);
    let both = |records: &[Record]| values(records, &fact::CONTAINER_RUNNING).last() == Some(&2.0);
    poll(&mut sensor, &host, 100, both);
}

#[test]
fn what_happened_while_nobody_listened_is_told_after() {
    let made_up = |action: &str, id: &str, ns: u64| daemon::event(action, id, ns);
    let before = daemon::events(&[
        made_up("start", "a", 11_000_000_000),
        made_up("start", "b", 11_500_000_000),
    ]);
    let after = daemon::events(&[
        made_up("start", "b", 11_500_000_000),
        made_up("die", "a", 19_000_000_000),
    ]);
    let first = std::sync::atomic::AtomicBool::new(true);
    let daemon = FakeDaemon::start(move |target| match target {
        _ if target.contains("until=") => Reply::End(if target.contains("since=0.000000000") {
            daemon::events(&[])
        } else {
            after.clone()
        }),
        _ if target.starts_with("/events")
            && first.swap(false, std::sync::atomic::Ordering::SeqCst) =>
        {
            Reply::End(before.clone())
        }
        _ if target.starts_with("/events") => Reply::Hold(daemon::events(&[])),
        _ => Reply::End(daemon::answer("[]")),
    });
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    let mut sensor = Containers::new(BRISK, || 12_000_000_000);
    let records = poll(&mut sensor, &host, 100, has_gap("it ended the connection"));
    assert_eq!(events(&records), ["started a", "started b"]);
    let n_asked = daemon.asked().len();
    assert!(once(&mut sensor, &host, 104).is_empty(), "it pauses");
    assert_eq!(daemon.asked().len(), n_asked);
    let records = poll(&mut sensor, &host, 106, has_samples);
    assert_eq!(events(&records), ["exited a 1 no 8000"]);
    assert_eq!(gaps(&records), [""; 0]);
    // The list does not have b, whose end nobody told.
    let records = poll(&mut sensor, &host, 120, has_samples);
    assert_eq!(
        gaps(&records),
        ["gap lost 1: 1 containers of docker ended unseen: exit code and lifetime are not known"]
    );
}

#[test]
fn a_stuck_daemon_is_a_gap() {
    check_gap(HASTY, Reply::Hold(Vec::new()), "gap overrun: docker at ");
    check_gap(
        HASTY,
        Reply::Hold(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
        "no answer within 200.0ms",
    );
    check_gap(
        HASTY,
        Reply::Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n".to_vec()),
        "no answer within 200.0ms",
    );
}

#[test]
fn a_daemon_that_gets_stuck_later_is_a_gap() {
    let list = captured("api-docker", "list.http");
    let healthy = with(list, daemon::events(&[]));
    let daemon = FakeDaemon::start(move |target| match target {
        "/_ping" => Reply::Hold(Vec::new()),
        _ => healthy(target),
    });
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    let hasty = Pace {
        answer: Duration::from_secs(2),
        ..BRISK
    };
    let mut sensor = Containers::new(hasty, AFTER_CAPTURES);
    let records = poll(&mut sensor, &host, 100, has_gap("overrun"));
    assert!(!values(&records, &fact::CONTAINER_RUNNING).is_empty());
}

#[test]
fn nonsense_is_a_gap() {
    check_gap(
        BRISK,
        Reply::End(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()),
        "gap malformed",
    );
    check_gap(
        BRISK,
        Reply::End(b"\xff".repeat(20 << 10)),
        "its answer is no HTTP",
    );
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(17 << 10));
    check_gap(
        BRISK,
        Reply::End(long.into_bytes()),
        "message head is too large",
    );
    check_gap(BRISK, Reply::End(Vec::new()), "it ended the connection");
    check_gap(
        BRISK,
        Reply::End(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[".to_vec()),
        "it ended the connection",
    );
    check_gap(
        BRISK,
        Reply::End(daemon::answer("{\"not\": \"an event\"}")),
        "1 events make no sense",
    );
    check_gap(
        BRISK,
        Reply::End(captured("api-docker", "refusal.http")),
        "gap unsupported: docker at ",
    );
    check_gap(
        BRISK,
        Reply::End(captured("api-docker", "refusal.http")),
        "client version 1.99 is too new",
    );
}

/// What a daemon that answers everything so leaves as its first gap, where it is asked
/// by gRPC.
fn check_grpc_gap(reply: Reply, expected: &str) {
    for path in ["/run/containerd/containerd.sock", "/run/crio/crio.sock"] {
        let reply = reply.clone();
        let daemon = FakeDaemon::start(move |_| reply.clone());
        let host = node(&[(path, daemon.socket())], &[]);
        let mut sensor = Containers::new(HASTY, BEFORE_CAPTURES);
        let records = poll(&mut sensor, &host, 100, |records| !gaps(records).is_empty());
        let gaps = gaps(&records);
        assert!(gaps[0].contains(expected), "{gaps:#?}");
        assert!(values(&records, &fact::CONTAINER_RUNNING).is_empty());
        let sights = examine(&host);
        assert_eq!(sights.len(), 1, "{sights:#?}");
        assert_eq!(sights[0].clarity, sexton_model::sight::Clarity::Blind);
    }
}

#[test]
fn what_speaks_grpc_badly_is_a_gap() {
    check_grpc_gap(Reply::Hold(Vec::new()), "no answer within 200.0ms");
    check_grpc_gap(Reply::End(Vec::new()), "gap vanished: c");
    check_grpc_gap(
        Reply::Hold(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        "its answer is no HTTP/2: connection error detected: frame with invalid size",
    );
    // Made up: settings, and an answer that is all headers and says that there is no such
    // service.
    let fields = b"\x88\x00\x0bgrpc-status\x0212\x00\x0cgrpc-message\x00";
    let mut declined = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00".to_vec();
    declined.extend_from_slice(&[0, 0, fields.len() as u8, 1, 5, 0, 0, 0, 1]);
    declined.extend_from_slice(fields);
    check_grpc_gap(Reply::Hold(declined), "it declined with gRPC status 12");
}

#[test]
fn too_much_is_a_gap() {
    let list = daemon::answer(&" ".repeat(9 << 20));
    let daemon = FakeDaemon::start(with(list, Vec::new()));
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    let mut sensor = Containers::new(BRISK, AFTER_CAPTURES);
    poll(
        &mut sensor,
        &host,
        100,
        has_gap("its answer is over 8388608 bytes"),
    );

    let long = format!(
        "{}\n{}",
        "x".repeat(300 << 10),
        daemon::event("start", "a", 1)
    );
    let daemon = FakeDaemon::start(with(daemon::answer("[]"), daemon::events(&[long])));
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    let mut sensor = Containers::new(BRISK, AFTER_CAPTURES);
    let records = poll(&mut sensor, &host, 100, |records| {
        !events(records).is_empty()
    });
    assert!(has_gap("it is over 262144 bytes")(&records));
    assert_eq!(events(&records), ["started a"]);
}

#[test]
fn a_daemon_that_does_not_run_is_not_woken() {
    let daemon = FakeDaemon::start(with(daemon::answer("[]"), Vec::new()));
    let sockets = [
        ("/run/docker.sock", daemon.socket()),
        ("/run/podman/podman.sock", daemon.socket()),
    ];
    let host = node(&sockets, &["containerd"]);
    let mut sensor = Containers::new(BRISK, AFTER_CAPTURES);
    let records = poll(
        &mut sensor,
        &host,
        100,
        has_gap("no container runtime answers"),
    );
    assert!(has_gap("no dockerd runs, and asking could start it")(
        &records
    ));
    assert_eq!(daemon.asked(), [""; 0]);
    let sights = examine(&host);
    assert!(
        sights
            .iter()
            .all(|sight| sight.because.contains("could start it")),
        "{sights:#?}"
    );
}

#[test]
fn without_a_socket_there_is_a_gap_and_then_a_daemon_is_found() {
    let host = node(&[], &[]);
    let mut sensor = Containers::new(BRISK, AFTER_CAPTURES);
    let records = poll(&mut sensor, &host, 100, |records| !records.is_empty());
    assert!(has_gap("by the `cgroups` sensor")(&records));
    let daemon = FakeDaemon::start(with(daemon::answer("[]"), daemon::events(&[])));
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    poll(&mut sensor, &host, 161, has_samples);
    assert_eq!(
        examine(&host)[0].clarity,
        sexton_model::sight::Clarity::Sees
    );
}

#[test]
fn an_image_that_is_still_goes_back_to_zero() {
    let stream = daemon::events(&[
        daemon::event("start", "a", 5_000_000_000),
        daemon::event("die", "a", 5_000_000_001),
    ]);
    let daemon = FakeDaemon::start(with(daemon::answer("[]"), stream));
    let host = node(&[("/run/docker.sock", daemon.socket())], &["dockerd"]);
    let mut sensor = Containers::new(BRISK, || 4_000_000_000);
    let records = poll(&mut sensor, &host, 100, |records| {
        values(records, &fact::CONTAINER_BIRTHS).len() == 2
    });
    assert_eq!(values(&records, &fact::CONTAINER_BIRTHS), [1.0, 0.0]);
}
