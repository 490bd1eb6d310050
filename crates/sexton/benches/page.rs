//! How soon the page has something to show: a recording of 12 hours, two cores, 99 samples
//! of stacks a second each, made by the store's own writer.
//!
//! Cold is a new `sexton serve` process, from its start to its answer. The file system's
//! cache is warm: nothing here empties it.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_model::fact::{Fact, core, memcg, napi, pressure, runq, sexton};
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::stack::{
    CodeKind, CoreState, Frame, FrameId, NameId, StackId, StackNode, StackSample, StackTables,
};
use sexton_model::subject::Subject;
use sexton_store::{BundleWriter, Limits, Node};

const HOURS: u64 = 12;
const CORES: u32 = 2;
const HZ: u64 = 99;
const SECOND: u64 = 1_000_000_000;
const START: u64 = 100 * SECOND;
const WALL: u64 = 1_760_000_000 * SECOND;
const RUNS: usize = 5;

fn main() {
    let bundle = bundle();
    let sexton = std::env::var_os("SEXTON").map(PathBuf::from);
    let sexton = sexton.expect("SEXTON names the binary: run cargo xtask bench page");
    let mut cold: Vec<(&str, Vec<f64>)> = COLD.iter().map(|(name, _)| (*name, vec![])).collect();
    for _ in 0..RUNS {
        for (n, (_, path)) in COLD.iter().enumerate() {
            let began = Instant::now();
            let server = Server::start(&sexton, &bundle);
            server.get(path);
            cold[n].1.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (name, times) in &mut cold {
        println!("cold, {name}: {:.0} ms", median(times));
    }
    let server = Server::start(&sexton, &bundle);
    let began = Instant::now();
    while !server.get("/api/v1/sources").contains("\"progress\":1.0") {
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("all of it read: {:.1} s", began.elapsed().as_secs_f64());
    for (name, paths) in warm() {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            for path in &paths {
                let began = Instant::now();
                server.get(path);
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        let worst = times.iter().copied().fold(0.0, f64::max);
        println!("{name}: {:.1} ms, worst {worst:.1} ms", median(&mut times));
    }
    println!("memory: {} MiB", server.rss_mib());
}

/// What a page asks for first.
const COLD: [(&str, &str); 3] = [
    ("sources", "/api/v1/sources"),
    (
        "tiles of the whole",
        "/api/v1/sources/main/tiles?lane=cores.worst&lane=nic.events&width=1200",
    ),
    (
        "heat map of the whole",
        "/api/v1/sources/main/heatmap?view=long&columns=1200",
    ),
];

/// What it asks for later, in windows of several lengths.
fn warm() -> Vec<(&'static str, Vec<String>)> {
    let end = (WALL + HOURS * 3600 * SECOND) / 1000;
    let windows = |lengths: &[u64]| -> Vec<(u64, u64)> {
        lengths
            .iter()
            .map(|seconds| (end - seconds * 1_000_000 * 3 / 2, end - seconds * 500_000))
            .collect()
    };
    let lanes = "lane=cores.worst&lane=cores.0&lane=cores.1&lane=kernel.0&lane=kernel.1&\
                 lane=memcg.dying&lane=memcg.live&lane=pressure.cpu&lane=network.delay&\
                 lane=nic.events&lane=units.restarts&lane=gaps";
    let of = |what: &str, lengths: &[u64]| -> Vec<String> {
        let paths = windows(lengths)
            .into_iter()
            .map(|(from, to)| format!("/api/v1/sources/main/{what}&from={from}&to={to}"));
        paths.collect()
    };
    let tiles = format!("tiles?{lanes}&width=1200");
    vec![
        (
            "warm, tiles of 12 lanes",
            of(&tiles, &[28_000, 3600, 600, 60, 5]),
        ),
        ("warm, heat map of 8 h", of("heatmap?view=long", &[28_000])),
        (
            "warm, heat map of an hour",
            of("heatmap?view=offset", &[3600]),
        ),
        (
            "warm, heat map of 10 minutes",
            of("heatmap?view=offset", &[600]),
        ),
        ("warm, flame graph of a minute", of("flame?x=1", &[60])),
        ("warm, flame graph of an hour", of("flame?x=1", &[3600])),
    ]
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A running `sexton serve`.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(sexton: &Path, bundle: &Path) -> Self {
        let mut child = Command::new(sexton)
            .arg("serve")
            .arg(bundle)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sexton starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().trim_start_matches("Open http://");
        let address = address.trim_end_matches('/').to_owned();
        Self { child, address }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(
            answer.starts_with("HTTP/1.1 200 "),
            "{path}: {}",
            &answer[..answer.len().min(600)]
        );
        answer
    }

    fn rss_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The recording, made once.
fn bundle() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = target.join("bench-page.bundle");
    if folder.join("complete").exists() {
        return folder;
    }
    let _ = std::fs::remove_dir_all(&folder);
    let began = Instant::now();
    let limits = Limits::ring(8 << 30, Duration::from_secs(30 * 86_400));
    let node = Node {
        name: "node".into(),
        kernel: "6.1".into(),
        boot_id: "boot".into(),
    };
    let mut writer =
        BundleWriter::create(&folder, limits, node, Moment::from_ns(START)).expect("a bundle");
    let tables = tables();
    let mut n_records = 0;
    for second in 0..HOURS * 3600 {
        let records = records(second);
        n_records += records.len();
        writer.append(&records).expect("room");
        let samples = samples(second);
        writer.append_stacks(&samples, &tables).expect("room");
        let now = Moment::from_ns(START + (second + 1) * SECOND);
        writer.sync(now).expect("room");
        writer.seal_if_due(now).expect("room");
    }
    let n_samples = writer.n_samples();
    let end = Moment::from_ns(START + HOURS * 3600 * SECOND);
    let summary = writer.finish(end).expect("sealed");
    std::fs::write(folder.join("complete"), "").expect("room");
    println!(
        "made {n_records} records and {n_samples} samples, {} MiB, in {:.0} s",
        summary.bytes >> 20,
        began.elapsed().as_secs_f64()
    );
    folder
}

/// A number that looks random and is always the same.
fn noise(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

fn part(seed: u64) -> f64 {
    (noise(seed) % 100) as f64 / 100.0
}

/// Of each core, twice a second.
const MODES: [&Fact; 9] = [
    &core::CORE_USER_RATIO,
    &core::CORE_NICE_RATIO,
    &core::CORE_SYSTEM_RATIO,
    &core::CORE_IRQ_RATIO,
    &core::CORE_SOFTIRQ_RATIO,
    &core::CORE_IOWAIT_RATIO,
    &core::CORE_STEAL_RATIO,
    &core::CORE_GUEST_RATIO,
    &core::CORE_IDLE_RATIO,
];

/// Of each core, once a second.
const OTHERS: [&Fact; 8] = [
    &runq::RUNQ_DELAY_P50_NS,
    &runq::RUNQ_DELAY_P99_NS,
    &runq::RUNQ_DELAY_MAX_NS,
    &napi::NAPI_WAIT_NS,
    &napi::NAPI_DELAY_P50_NS,
    &napi::NAPI_DELAY_P99_NS,
    &napi::NAPI_DELAY_MAX_NS,
    &napi::NAPI_POLL_GAP_NS,
];

/// About what a recorder says of a node with two cores in a second.
fn records(second: u64) -> Vec<Record> {
    let start = START + second * SECOND;
    let mut all = Vec::with_capacity(160);
    for tenth in 0..10 {
        let at = Moment::from_ns(start + tenth * SECOND / 10);
        let mut out = Sink::new("cores", at);
        let worst = part(second * 10 + tenth);
        out.sample(&Subject::cpu(0), &core::CORE_WORST_SYSTEM_RATIO, worst);
        if tenth % 5 == 0 {
            for cpu in 0..CORES {
                for (n, fact) in MODES.iter().enumerate() {
                    let seed = second * 31 + tenth + n as u64 + u64::from(cpu);
                    out.sample(&Subject::cpu(cpu), fact, part(seed) / 9.0);
                }
            }
        }
        all.extend(out.into_records());
    }
    let mut out = Sink::new("runq", Moment::from_ns(start));
    for cpu in 0..CORES {
        for (n, fact) in OTHERS.iter().enumerate() {
            let value = noise(second * 17 + n as u64) % 1_000_000;
            out.sample(&Subject::cpu(cpu), fact, value as f64);
        }
    }
    out.sample(
        &Subject::node(),
        &pressure::PRESSURE_CPU_SOME_RATIO,
        part(second),
    );
    out.sample(
        &Subject::node(),
        &pressure::PRESSURE_IO_SOME_RATIO,
        part(second + 1),
    );
    if second.is_multiple_of(30) {
        let wall = (WALL + second * SECOND) as f64;
        out.sample(&Subject::node(), &sexton::SEXTON_WALL_CLOCK_NS, wall);
        out.sample(&Subject::node(), &memcg::MEMCG_DYING, second as f64);
        out.sample(&Subject::node(), &memcg::MEMCG_LIVE, 240.0);
    }
    all.extend(out.into_records());
    all
}

/// A few hundred stacks of a dozen frames.
fn tables() -> StackTables {
    let names = ["cpu-clock", "swapper", "kubelet", "ray", "python"];
    let mut tables = StackTables {
        names: names.iter().map(|name| Arc::from(*name)).collect(),
        ..StackTables::default()
    };
    for n in 0..400 {
        let symbol = NameId(u32::try_from(tables.names.len()).expect("few"));
        tables.names.push(Arc::from(format!("function_{n}")));
        tables.frames.push(Frame {
            kind: if n % 3 == 0 {
                CodeKind::User
            } else {
                CodeKind::Kernel
            },
            symbol: Some(symbol),
            module: None,
            address: n,
            is_inlined: false,
        });
    }
    for n in 0..3000_u32 {
        let caller = match n % 12 {
            0 => StackId::EMPTY,
            _ => StackId(n - 1),
        };
        let frame = FrameId(u32::try_from(noise(u64::from(n)) % 400).expect("small"));
        tables.stacks.push(StackNode { caller, frame });
    }
    tables
}

/// Each core is idle three fifths of the time.
fn samples(second: u64) -> Vec<StackSample> {
    let mut samples = Vec::new();
    for n in 0..HZ {
        for cpu in 0..CORES {
            let at = START + second * SECOND + n * SECOND / HZ + u64::from(cpu) * 1000;
            let dice = noise(at);
            let idle = dice % 5 < 3;
            samples.push(StackSample {
                at: Moment::from_ns(at),
                cpu,
                pid: if idle { 0 } else { 1000 + (dice % 40) as u32 },
                tid: if idle { 0 } else { 1000 + (dice % 200) as u32 },
                comm: NameId(if idle { 1 } else { 2 + (dice % 3) as u32 }),
                cgroup: None,
                state: if idle {
                    CoreState::Idle
                } else {
                    CoreState::Kernel
                },
                event: NameId(0),
                weight: SECOND / HZ,
                stack: StackId((dice >> 8) as u32 % 3000),
            });
        }
    }
    samples
}
