//! A real Prometheus with our rules scrapes a real agent: dying cgroups raise the right alerts,
//! which resolve when the kernel has released them, and no other alert fires.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton::{binary, sensors};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

/// A prime, and more than the thousand cgroups from which on the rules look.
const N: u32 = 1_013;

const SCRAPE_SECONDS: u64 = 2;
const EVALUATION_SECONDS: u64 = 5;

/// A process that is gone at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn target() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it is bound").port()
}

fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

/// Waits until there is an answer; says how long it took.
fn wait<T>(what: &str, seconds: u64, mut ask: impl FnMut() -> Option<T>) -> (T, Duration) {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return (answer, began.elapsed());
        }
        assert!(began.elapsed() < Duration::from_secs(seconds), "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// An agent that sees memory cgroups and nothing else, so that what others do on this machine
/// raises nothing. The sensor looks often for its first four censuses.
fn start_agent(folder: &Path, port: u16) -> Running {
    let mut off = sensors();
    off.retain(|name| !["memcg", "host"].contains(&name.as_str()));
    let config = folder.join("agent.toml");
    let text = format!(
        "[ring]\npath = {:?}\n[listen]\nsocket = {:?}\nhttp = \"127.0.0.1:{port}\"\n\
         [sensors]\noff = {off:?}\nevery = {{ memcg = \"25s\" }}\n\
         [budget]\ncpu_percent = 1000\nmemory = \"1GiB\"\n",
        folder.join("ring"),
        folder.join("agent.sock"),
    );
    fs::write(&config, text).expect("a file");
    let sexton = binary().expect("SEXTON names the binary: run cargo xtask test kernel");
    let log = fs::File::create(folder.join("agent.log")).expect("a log");
    let agent = Command::new(sexton)
        .args(["agent", "--config"])
        .arg(&config)
        .stderr(Stdio::from(log))
        .spawn();
    Running(agent.expect("it starts"))
}

fn start_prometheus(folder: &Path, port: u16, agent: u16) -> Running {
    let program = target().join("prometheus/usr/bin/prometheus");
    assert!(
        program.exists(),
        "sexton-missing: programs: {} is not there; run cargo xtask test setup",
        program.display()
    );
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus");
    let rules = fs::canonicalize(rules.join("sexton.rules.yml")).expect("rules");
    let config = folder.join("prometheus.yml");
    let text = format!(
        "global:\n  scrape_interval: {SCRAPE_SECONDS}s\n  evaluation_interval: {EVALUATION_SECONDS}s\n\
         rule_files: [{rules:?}]\nscrape_configs:\n- job_name: sexton\n  static_configs:\n  \
         - targets: [\"127.0.0.1:{agent}\"]\n"
    );
    fs::write(&config, text).expect("a file");
    let log = fs::File::create(folder.join("prometheus.log")).expect("a log");
    let prometheus = Command::new(program)
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stderr(Stdio::from(log))
        .spawn();
    Running(prometheus.expect("it starts"))
}

/// The names of alerts that fire.
fn firing(prometheus: &str) -> Option<BTreeSet<String>> {
    let answer: Value = serde_json::from_str(&get(prometheus, "/api/v1/alerts")?).ok()?;
    let alerts = answer["data"]["alerts"].as_array()?;
    let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
    let names = firing.filter_map(|alert| alert["labels"]["alertname"].as_str());
    Some(names.map(str::to_owned).collect())
}

/// A value of the agent, as it answers a scrape.
fn value(agent: &str, metric: &str) -> Option<f64> {
    let text = get(agent, "/metrics")?;
    let line = text.lines().find_map(|line| line.strip_prefix(metric))?;
    line.trim().parse().ok()
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn dying_cgroups_raise_the_right_alerts_and_no_others() {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Sexton);
    let (agent_port, port) = (free_port(), free_port());
    let agent = format!("127.0.0.1:{agent_port}");
    let prometheus = format!("127.0.0.1:{port}");
    let folder = tempfile::tempdir().expect("a folder");
    let _prometheus = start_prometheus(folder.path(), port, agent_port);
    let nursery = Nursery::new("prometheus").expect("a cgroup of our own");
    let leak = nursery
        .leak(LEAKER, "z", N, Pin::OwnFile)
        .expect("dying ones");
    let _agent = start_agent(folder.path(), agent_port);
    let many = |n: f64| n >= f64::from(N);
    let dying = || value(&agent, "sexton_memcg_dying ").filter(|n| many(*n));
    wait("the agent never exports the dying ones", 60, dying);
    let expected = |name: &str| {
        let names = ["SextonDyingCgroups", "SextonMCG001", "SextonMCG003"];
        names.contains(&name)
    };
    let fired = |name: &str| firing(&prometheus).filter(|names| names.contains(name));
    let (_, took) = wait("no alert fires", 60, || fired("SextonDyingCgroups"));
    let most = SCRAPE_SECONDS + 2 * EVALUATION_SECONDS;
    assert!(took <= Duration::from_secs(most + 1), "it took {took:?}");
    // sexton's own judgement, at the next multiple of 30 s.
    let (_, took) = wait("sexton has no finding", 60, || {
        get(&agent, "/metrics").filter(|text| text.contains("code=\"MCG003\""))
    });
    let (_, fired_after) = wait("no alert of the finding", 60, || fired("SextonMCG003"));
    assert!(
        fired_after <= Duration::from_secs(most + 1),
        "it took {fired_after:?}"
    );
    let names = firing(&prometheus).expect("it answers");
    assert!(
        names.iter().all(|name| expected(name)),
        "{names:?} after {took:?}"
    );
    drop(leak);
    drop(nursery);
    let few = || value(&agent, "sexton_memcg_dying ").filter(|n| !many(*n));
    wait("the agent never exports that they are released", 60, few);
    let mut others = BTreeSet::new();
    let (_, took) = wait("the alerts never resolve", 150, || {
        let names = firing(&prometheus)?;
        others.extend(names.iter().filter(|name| !expected(name)).cloned());
        names.is_empty().then_some(())
    });
    assert!(others.is_empty(), "{others:?} fired, too, within {took:?}");
    // Prometheus asked for OpenMetrics, and could read all of it.
    let up = "/api/v1/query?query=min_over_time(up[30s])";
    let answer = get(&prometheus, up).expect("it answers");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["data"]["result"][0]["value"][1], "1", "{answer}");
}
