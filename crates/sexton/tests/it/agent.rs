//! `sexton agent`, `status` and `incidents`, as users run them, with sensors that need no
//! privileges.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sexton_model::timeline::Timeline as _;
use sexton_sensors::SENSORS;
use sexton_store::{Bundle, Ring};
use sexton_testkit::TempTree;

use crate::command::{SEXTON, sexton, stderr, stdout};

/// A folder for an agent: its configuration, ring and socket.
pub(crate) struct Place {
    tree: TempTree,
}

impl Place {
    pub(crate) fn new(more: &str) -> Self {
        let place = Self {
            tree: TempTree::new(),
        };
        let off: Vec<&str> = SENSORS
            .iter()
            .map(|spec| spec.name)
            .filter(|name| !["cores", "host", "pressure"].contains(name))
            .collect();
        let config = format!(
            "[ring]\npath = {:?}\n[listen]\nsocket = {:?}\nhttp = \"127.0.0.1:0\"\n[sensors]\noff = {off:?}\n{more}",
            place.ring(),
            place.socket(),
        );
        fs::write(place.config(), config).expect("a file");
        place
    }

    pub(crate) fn ring(&self) -> PathBuf {
        self.tree.path().join("ring")
    }

    fn socket(&self) -> PathBuf {
        self.tree.path().join("agent.sock")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.tree.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.tree.path().join("agent.toml")
    }

    pub(crate) fn start(&self) -> Running {
        let child = Command::new(SEXTON)
            .args(["agent", "--config"])
            .arg(self.config())
            .stderr(Stdio::piped())
            .spawn();
        let running = Running(Some(child.expect("it starts")));
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.status().is_none() {
            assert!(Instant::now() < deadline, "the agent never answered");
            thread::sleep(Duration::from_millis(50));
        }
        running
    }

    pub(crate) fn status(&self) -> Option<serde_json::Value> {
        let socket = self.socket();
        let output = sexton(&["status", "--json", "--agent", socket.to_str()?]);
        serde_json::from_slice(&output.stdout).ok()
    }

    /// The answer to a request, with its head. More headers end with an end of line each.
    pub(crate) fn get(&self, path: &str, headers: &str) -> String {
        let status = self.status().expect("it answers");
        let address = status["http"].as_str().expect("it listens");
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// Waits until the agent has kept this number of records.
    pub(crate) fn wait_for_records(&self, n: u64) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let kept = || self.status().and_then(|status| status["records"].as_u64());
        while kept().is_none_or(|kept| kept < n) {
            assert!(Instant::now() < deadline, "only {:?} records", kept());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// An agent that is gone at the end of a test.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Sends it a signal that it lives on after.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.0.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Ends it by a signal; gives what it logged.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let child = self.0.take().expect("it runs");
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.expect("kill is there").success());
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), stderr(&output))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn only_boot(ring: &Path) -> Bundle {
    let boots = Ring::at(ring).boots().expect("a ring");
    assert_eq!(boots.len(), 1, "{boots:?}");
    Bundle::open(&boots[0].records).expect("a bundle")
}

#[test]
fn it_ends_cleanly_and_its_ring_is_a_bundle() {
    let place = Place::new("");
    let running = place.start();
    place.wait_for_records(20);
    let status = place.status().expect("it answers");
    assert_eq!(status["schema"], "sexton.status/1");
    assert_eq!(status["sensors"]["cores"]["state"], "on");
    assert_eq!(status["sensors"]["stacks"]["state"], "off");
    let (code, log) = running.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("agent started"), "{log}");
    assert!(!place.socket().exists());
    let bundle = only_boot(&place.ring());
    assert!(bundle.load(None, None).iter().count() >= 20);
}

#[test]
fn a_second_agent_is_refused_and_told_who_has_the_ring() {
    let place = Place::new("");
    let running = place.start();
    let pid = running.0.as_ref().expect("it runs").id();
    let config = place.config();
    let output = sexton(&["agent", "--config", config.to_str().expect("plain")]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains(&format!("process {pid}")), "{said}");
}

#[test]
fn a_killed_one_is_continued_in_the_same_ring() {
    let place = Place::new("");
    let running = place.start();
    place.wait_for_records(20);
    running.end("-KILL");
    let before = only_boot(&place.ring()).load(None, None).iter().count();
    assert!(before >= 10, "{before} records survived");
    let running = place.start();
    place.wait_for_records(20);
    let (_, log) = running.end("-TERM");
    assert!(log.contains("continuing the ring of this boot"), "{log}");
    let records = only_boot(&place.ring()).load(None, None);
    assert!(records.iter().count() >= before + 20);
    let killed = |text: &str| text.contains("the recorder was killed");
    let said = records.gaps().any(|(_, _, gap)| killed(&gap.text));
    assert!(said, "no gap tells of the kill");
}

#[test]
fn a_reload_takes_what_it_can_and_a_wrong_file_changes_nothing() {
    let place = Place::new("[budget]\nmemory = \"1GiB\"\n");
    let running = place.start();
    let pid = running.0.as_ref().expect("it runs").id().to_string();
    let right = fs::read_to_string(place.config()).expect("it is there");
    for (config, said) in [
        (right.replace("1GiB", "2GiB"), "configuration reloaded"),
        ("[ring]\npaht = 1\n".to_owned(), "the old one holds"),
    ] {
        fs::write(place.config(), config).expect("a file");
        let sent = Command::new("kill").args(["-HUP", &pid]).status();
        assert!(sent.expect("kill is there").success(), "{said}");
        thread::sleep(Duration::from_millis(1500));
    }
    let (code, log) = running.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("info: configuration reloaded\n"), "{log}");
    assert!(
        log.contains("the old one holds") && log.contains("paht"),
        "{log}"
    );
}

#[test]
fn it_serves_health_and_metrics() {
    let place = Place::new("");
    let _running = place.start();
    place.wait_for_records(1);
    let get = |path: &str| place.get(path, "");
    assert!(get("/healthz").starts_with("HTTP/1.1 200"));
    assert!(
        get("/readyz").starts_with("HTTP/1.1 503"),
        "judged too early"
    );
    let metrics = get("/metrics");
    assert!(metrics.contains("text/plain; version=0.0.4"), "{metrics}");
    assert!(
        metrics.contains("sexton_sensor_up{sensor=\"cores\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("sexton_findings_open 0"), "{metrics}");
    let sources = get("/api/v1/sources");
    assert!(sources.contains("\"main\"") && sources.contains("\"agent\":true"));
    // Asked by a confined thread, which may read the ring.
    let agent = get("/api/v1/agent");
    assert!(agent.starts_with("HTTP/1.1 200"), "{agent}");
    assert!(
        agent.contains("\"boots\":1") && agent.contains("\"incidents\":[]"),
        "{agent}"
    );
}

/// A kubelet's probes send no token, and must not be answered with anything that needs one.
#[test]
fn probes_need_no_token_and_reveal_nothing() {
    const TOKEN: &str = "a-token-of-this-test";
    let place = Place::new("");
    let token = place.folder().join("token");
    fs::write(&token, TOKEN).expect("a file");
    let config = fs::read_to_string(place.config()).expect("it is there");
    let listen = format!("http = \"127.0.0.1:0\"\ntoken_file = {token:?}\n");
    let config = config.replace("http = \"127.0.0.1:0\"\n", &listen);
    fs::write(place.config(), config).expect("a file");
    let _running = place.start();
    let body = |answer: &str| answer.split_once("\r\n\r\n").map(|it| it.1.to_owned());
    let health = place.get("/healthz", "");
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    assert_eq!(body(&health).as_deref(), Some("ok\n"));
    let ready = place.get("/readyz", "");
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert_eq!(body(&ready).as_deref(), Some("not judged yet\n"));
    for path in ["/metrics", "/", "/api/v1/agent", "/healthz/", "/healthz/x"] {
        let answer = place.get(path, "");
        assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
    }
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let metrics = place.get("/metrics", &bearer);
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
}

#[test]
fn threads_that_answer_clients_are_confined_and_no_others() {
    let place = Place::new("");
    let running = place.start();
    // The ring is read and shown all the same.
    assert!(place.get("/api/v1/sources", "").contains("\"main\""));
    let pid = running.0.as_ref().expect("it runs").id();
    let mut n_confined = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).expect("its threads") {
        let task = task.expect("a thread").path();
        // A thread may end meanwhile.
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        let Ok(status) = fs::read_to_string(task.join("status")) else {
            continue;
        };
        let is_confined = status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1");
        let has_none = status.contains("CapEff:\t0000000000000000");
        match name.trim() {
            "listens" | "answers" | "reads" => {
                assert!(is_confined && has_none, "{name}: {status}");
                n_confined += 1;
            }
            // The loop of the agent and its sensors.
            "sexton" | "status" | "cores" | "host" | "pressure" => {
                assert!(!is_confined, "{name}: {status}");
            }
            _ => {}
        }
    }
    assert!(n_confined >= 1);
    let (_, log) = running.end("-TERM");
    assert!(!log.contains("cannot confine"), "{log}");
}

#[test]
fn a_wrong_configuration_is_named_by_line_and_key() {
    let place = Place::new("");
    let config = place.config();
    let config = config.to_str().expect("plain");
    let check = || sexton(&["agent", "check-config", config]);
    assert_eq!(check().status.code(), Some(0));
    fs::write(config, "[ring]\nmax_sise = \"1GiB\"\n").expect("a file");
    let output = check();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("agent.toml:2: there is no key max_sise"),
        "{said}"
    );
}

#[test]
fn the_example_is_what_holds_without_a_file() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd/agent.toml");
    let output = sexton(&["agent", "check-config", example.to_str().expect("plain")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn without_an_agent_they_say_what_to_do() {
    for command in ["status", "incidents"] {
        let output = sexton(&[command, "--agent", "/nowhere/agent.sock"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(stderr(&output).contains("--agent"), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

/// The Parquet files below a folder.
fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let folders = entries.filter_map(|entry| fs::read_dir(entry.ok()?.path()).ok());
    let files = folders
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    files
        .filter(|path| path.extension().is_some_and(|it| it == "parquet"))
        .collect()
}

#[test]
fn reports_reach_the_bucket_of_the_fleet() {
    let lake = TempTree::new();
    let place = Place::new(&format!(
        "[fleet]\nlake = \"file://{}\"\nevery = \"10s\"\nnode = \"web7\"\nlabels = {{ zone = \"us-east-1a\" }}\n",
        lake.path().display()
    ));
    let agent = place.start();
    let deadline = Instant::now() + Duration::from_secs(40);
    let sent = || place.status()?["fleet"]["sent"].as_u64();
    while sent().is_none_or(|sent| sent == 0) {
        assert!(Instant::now() < deadline, "{:?}", place.status());
        thread::sleep(Duration::from_millis(200));
    }
    let metrics = place.get("/metrics", "");
    assert!(metrics.contains("sexton_fleet_up 1\n"), "{metrics}");
    assert!(
        !metrics.contains("sexton_fleet_reports_sent_total 0\n"),
        "{metrics}"
    );
    let (code, log) = agent.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    let files = parquet_files(lake.path());
    let reports = files
        .iter()
        .filter(|path| path.to_string_lossy().contains("-web7-"));
    let report = reports.min().expect("a report");
    let bytes = fs::read(report).expect("a file");
    assert!(bytes.len() <= sexton_lake::MAX_REPORT_BYTES);
    let file = sexton_lake::File::open(bytes.into()).expect("a report");
    let zones = file.texts(0, "zone").expect("a column");
    assert!(zones.values.iter().any(|zone| &**zone == "us-east-1a"));
    let watched = file.numbers(0, "watched_seconds").expect("a column");
    assert!(watched.iter().any(|seconds| *seconds > 0.0), "{watched:?}");
}
