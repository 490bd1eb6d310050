//! What the store costs: `cargo bench --package sexton-store`.
//!
//! A node of 400 cgroups, two CPUs' worth of run queues and an event a second, at 1000
//! records a second for an hour.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use sexton_model::fact::sexton::{ClockJump, SEXTON_CLOCK_JUMP, SEXTON_WALL_CLOCK_NS};
use sexton_model::fact::{self, Fact, Measure};
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_store::{Bundle, BundleWriter, Limits, Node};

const SECONDS: u64 = 3600;
const N_SUBJECTS: u64 = 400;
const N_EACH_SECOND: u64 = 999;

/// A sequence that looks random and is the same each time.
struct Mixer(u64);

impl Mixer {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

struct Workload {
    subjects: Vec<Subject>,
    facts: Vec<&'static Fact>,
    counters: Vec<f64>,
    mixer: Mixer,
}

impl Workload {
    fn new() -> Self {
        let name = |i: u64| {
            let pod = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-pod{pod:016x}.slice/cri-{i:08x}"
            )
        };
        let subjects = (0..N_SUBJECTS).map(|i| Subject::new(SubjectKind::Cgroup, name(i)));
        let facts = fact::all().filter(|fact| fact.measure != Measure::None);
        Self {
            subjects: subjects.collect(),
            facts: facts.take(6).collect(),
            counters: vec![0.0; 4096],
            mixer: Mixer(1),
        }
    }

    fn second(&mut self, second: u64) -> Vec<Record> {
        let now = second * 1_000_000_000 + self.mixer.below(2_000_000);
        let mut sink = Sink::new("bench", Moment::from_ns(now));
        for i in 0..N_EACH_SECOND {
            let nth = second * N_EACH_SECOND + i;
            let subject = &self.subjects[(nth % N_SUBJECTS) as usize];
            let fact = self.facts[(nth / N_SUBJECTS % self.facts.len() as u64) as usize];
            let counter = &mut self.counters[(nth % 2400) as usize];
            *counter += self.mixer.below(100_000) as f64;
            sink.sample(subject, fact, *counter);
        }
        if second.is_multiple_of(10) {
            let wall = (1_700_000_000 + second) as f64 * 1e9;
            sink.sample(&Subject::node(), &SEXTON_WALL_CLOCK_NS, wall);
        }
        let at = Moment::from_ns(now - self.mixer.below(1_000_000_000).min(now));
        let jump = ClockJump {
            wall_ns: Some(self.mixer.below(1000)),
            ..ClockJump::default()
        };
        sink.event(at, &Subject::node(), &SEXTON_CLOCK_JUMP, jump);
        sink.into_records()
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let limits = Limits {
        max_bytes: 1 << 30,
        max_age: Duration::from_secs(1 << 30),
        segment_bytes: segment_bytes(),
        segment_age: Duration::from_secs(1 << 30),
    };
    let node = Node {
        name: "bench".into(),
        kernel: String::new(),
        boot_id: String::new(),
    };
    let mut writer =
        BundleWriter::create(dir.path(), limits, node, Moment::from_ns(0)).expect("a bundle");
    let mut workload = Workload::new();
    let (mut busy, mut longest, mut n) = (Duration::ZERO, Duration::ZERO, 0);
    let before_kib = peak_kib();
    for second in 1..=SECONDS {
        let records = workload.second(second);
        n += records.len();
        let start = Instant::now();
        writer.append(&records).expect("kept");
        writer
            .sync(Moment::from_ns(second * 1_000_000_000))
            .expect("kept");
        longest = longest.max(start.elapsed());
        busy += start.elapsed();
    }
    let log_bytes = writer.bytes();
    let start = Instant::now();
    let summary = writer
        .finish(Moment::from_ns((SECONDS + 1) * 1_000_000_000))
        .expect("kept");
    busy += start.elapsed();
    println!("records            {n}");
    println!("peak RSS           {before_kib} -> {} KiB", peak_kib());
    println!(
        "before last seal   {:.2} bytes a record",
        log_bytes as f64 / n as f64
    );
    println!(
        "sealed             {:.2} bytes a record, {} segments",
        summary.bytes as f64 / n as f64,
        summary.segments
    );
    println!(
        "write, all in all  {:.0} ns a record, {:.3} % of a core at 1000/s",
        busy.as_nanos() as f64 / n as f64,
        busy.as_secs_f64() / SECONDS as f64 * 100.0
    );
    println!("longest stall      {longest:?}");
    let start = Instant::now();
    let bundle = Bundle::open(dir.path()).expect("a bundle");
    let n_read = bundle.stream(None, None).count();
    println!("read all           {:?}, {n_read} records", start.elapsed());
    let start = Instant::now();
    let minute = Moment::from_ns(3_000_000_000_000)..=Moment::from_ns(3_060_000_000_000);
    let n_read = bundle.stream(Some(minute), None).count();
    println!("read one minute    {:?}, {n_read} records", start.elapsed());
}

fn segment_bytes() -> u64 {
    let mib = std::env::args().find_map(|word| word.parse::<u64>().ok());
    mib.unwrap_or(16) << 20
}
