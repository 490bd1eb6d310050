//! Makes records of what was captured by hand on a kernel where sexton could not be recorded.
//!
//! The files are told in `fixtures/5.4-vm/kubelet-walk-v1/capture.toml`. Nothing is judged here:
//! each line becomes what the sensor of its kind would have said.

use std::time::Duration;

use serde::Deserialize;
use sexton_model::fact::EventFact;
use sexton_model::fact::core::{CORE_IDLE_RATIO, CORE_SYSTEM_RATIO};
use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_LIVE, MEMCG_READS, MemcgReads};
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::fact::stack::{PROCESS_ON_CORE, ProcessOnCore, StackShare};
use sexton_model::moment::Moment;
use sexton_model::payload::Payload;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};

/// Where the hierarchy was mounted.
const MOUNT: &str = "/sys/fs/cgroup/memory";

const FILE: &str = "memory.numa_stat";

/// Seconds since boot of the first look, of the one at the captured pile, and of the later one.
const FIRST: f64 = 100.0;
const CAPTURED: f64 = 200.0;
const LATER: f64 = 300.0;

/// The captured files.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// Read times.
    pub timings: &'a str,
    /// The hottest stacks.
    pub stacks: &'a str,
    /// Pages by cgroup.
    pub kpagecgroup: &'a str,
    /// What is in none of them.
    pub told: &'a str,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    hz: f64,
    reader_period_seconds: f64,
    later: Later,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Later {
    dying: u64,
    live: u64,
    root_ms: f64,
    leaf_ms: f64,
    held_seconds: u32,
}

/// What sensors would have said.
///
/// # Panics
///
/// When a file is not as it was captured.
pub fn records(files: &Files<'_>) -> Vec<Record> {
    let told: Told = toml::from_str(files.told).expect("what was told");
    let parent = orphaned(files.kpagecgroup);
    let sampled = Sampled::parse(files.stacks);
    let mut records = Vec::new();
    let moments = [FIRST, CAPTURED];
    for (look, at) in looks(files.timings).iter().zip(moments) {
        records.extend(look.records(at, &parent));
    }
    let seconds = sampled.n_all as f64 / told.hz;
    let ratio = sampled.n_kernel as f64 / sampled.n_all as f64;
    records.extend(sampled.record(CAPTURED + seconds, seconds, ratio));
    records.extend(later(&told, &sampled));
    records
}

/// The directory whose pages belong to dead children, and how many those are.
fn orphaned(kpagecgroup: &str) -> (String, u64) {
    let line = kpagecgroup.lines().find(|line| line.contains("NO TASKS"));
    let words: Vec<&str> = line.expect("a directory").split(' ').collect();
    let path = words[0].strip_prefix(MOUNT).expect("below the mount");
    let at = words.iter().position(|word| *word == "file");
    let pages = words[at.expect("its pages") + 1];
    (path.to_owned(), pages.parse().expect("a number"))
}

/// Read times with a number of dying cgroups: path, and the least in ns.
struct Look {
    dying: u64,
    reads: Vec<(String, u64)>,
}

fn looks(timings: &str) -> Vec<Look> {
    let mut looks: Vec<Look> = Vec::new();
    for line in timings.lines() {
        if let Some(dying) = line.strip_prefix("dying ") {
            looks.push(Look {
                dying: dying.parse().expect("a number"),
                reads: Vec::new(),
            });
        } else if let Some(read) = line.strip_prefix(MOUNT) {
            let (file, times) = read.split_once(" min ").expect("a read");
            let least = times.split(' ').next().and_then(|ms| ms.parse().ok());
            let path = file.strip_suffix(&format!("/{FILE}"));
            let look = looks.last_mut().expect("a number of dying ones first");
            look.reads.extend(path.map(|path| {
                let ms: f64 = least.expect("a time");
                (path.to_owned(), ns_of(ms))
            }));
        }
    }
    looks
}

impl Look {
    fn records(&self, at: f64, (parent, pages): &(String, u64)) -> Vec<Record> {
        let mut reads = MemcgReads {
            file: FILE.to_owned(),
            dying: Some(self.dying),
            ..MemcgReads::default()
        };
        for (path, ns) in &self.reads {
            if path.is_empty() {
                reads.root_ns = Some(*ns);
            } else if path == parent {
                reads.ancestor = Some(path.clone());
                reads.ancestor_bytes = Some(pages * 4096);
                reads.ancestor_ns = Some(*ns);
                reads.n_ancestors = Some(1);
            } else {
                reads.leaf = Some(path.clone());
                reads.leaf_ns = Some(*ns);
            }
        }
        event("numa_stat", at, &Subject::node(), &MEMCG_READS, reads)
    }
}

/// Samples of stacks on the core of the reader.
struct Sampled {
    cpu: u32,
    pid: String,
    comm: String,
    n_all: u64,
    n_kernel: u64,
    stacks: Vec<StackShare>,
}

impl Sampled {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().expect("a head").split(' ').collect();
        let rows: Vec<Vec<&str>> = lines
            .map(|line| line.split_ascii_whitespace().collect())
            .collect();
        let first = rows.first().expect("a stack");
        let [_, _, cpu, _, pid, comm, _] = first[..] else {
            panic!("not a row of stacks: {first:?}");
        };
        let cpu_head = format!("cpu{cpu}");
        let of_cpu = head.iter().position(|word| *word == cpu_head);
        let of_cpu = &head[of_cpu.expect("its core")..];
        let number = |word: &str| word.parse().expect("a number");
        let stacks = rows.iter().map(|row| {
            let frames = row[6].trim_end_matches(';').rsplit(';');
            StackShare {
                samples: number(row[0]),
                frames: frames.map(str::to_owned).collect(),
            }
        });
        Self {
            cpu: cpu.parse().expect("a number"),
            pid: pid.into(),
            comm: comm.into(),
            n_all: number(of_cpu[2]),
            n_kernel: number(of_cpu[4]),
            stacks: stacks.collect(),
        }
    }

    /// What is said of an interval that ends at a moment.
    fn record(&self, at: f64, seconds: f64, kernel_ratio: f64) -> Vec<Record> {
        let interval = Duration::from_secs_f64(seconds);
        let says = ProcessOnCore {
            comm: Some(self.comm.clone()),
            cpu: Some(self.cpu),
            kernel_samples: Some(self.n_kernel),
            interval_ns: u64::try_from(interval.as_nanos()).ok(),
            kernel_ratio: Some((kernel_ratio * 1e3).round() / 1e3),
            stacks: self.stacks.clone(),
            ..ProcessOnCore::default()
        };
        let process = Subject::new(SubjectKind::Process, self.pid.as_str());
        event("stacks", at, &process, &PROCESS_ON_CORE, says)
    }
}

/// The later look: reads that take as long as the pause between them.
fn later(told: &Told, sampled: &Sampled) -> Vec<Record> {
    let later = &told.later;
    let end = LATER + f64::from(later.held_seconds);
    let mut records = Vec::new();
    for sensor in ["cores", "memcg", "numa_stat", "stacks"] {
        let about = Subject::new(SubjectKind::Sensor, sensor);
        for at in [LATER, end] {
            let mut out = Sink::new(sensor, moment(at));
            out.sample(&about, &SEXTON_POLL_NS, 1.0);
            records.extend(out.into_records());
        }
    }
    let reads = MemcgReads {
        file: FILE.to_owned(),
        root_ns: Some(ns_of(later.root_ms)),
        leaf_ns: Some(ns_of(later.leaf_ms)),
        dying: Some(later.dying),
        ..MemcgReads::default()
    };
    let node = Subject::node();
    records.extend(event("numa_stat", LATER, &node, &MEMCG_READS, reads));
    for census in 0..4 {
        let mut out = Sink::new("memcg", moment(LATER + 9.0 * f64::from(census)));
        out.sample(&node, &MEMCG_LIVE, later.live as f64);
        out.sample(&node, &MEMCG_DYING, later.dying as f64);
        records.extend(out.into_records());
    }
    // The reader's part of its core: one read, then the rest of the second.
    let part = (later.root_ms / 1e3 / told.reader_period_seconds).min(1.0);
    for tenth in 0..=later.held_seconds * 10 {
        let mut out = Sink::new("cores", moment(LATER + f64::from(tenth) / 10.0));
        for (core, system) in [(0, 0.0), (sampled.cpu, part)] {
            let core = Subject::cpu(core);
            out.sample(&core, &CORE_SYSTEM_RATIO, system);
            out.sample(&core, &CORE_IDLE_RATIO, 1.0 - system);
        }
        records.extend(out.into_records());
    }
    for interval in 1..=later.held_seconds / 10 {
        let at = LATER + 10.0 * f64::from(interval);
        records.extend(sampled.record(at, 10.0, part));
    }
    records
}

fn moment(seconds: f64) -> Moment {
    Moment::from_ns((seconds * 1e9) as u64)
}

fn ns_of(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

fn event<T: Payload>(
    sensor: &'static str,
    at: f64,
    about: &Subject,
    fact: &'static EventFact<T>,
    says: T,
) -> Vec<Record> {
    let mut out = Sink::new(sensor, moment(at));
    out.event(moment(at), about, fact, says);
    out.into_records()
}
