//! Recordings that are made up, by the store's own writer.

use std::path::PathBuf;
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

pub(crate) const HOURS: u64 = 12;
pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const WALL: u64 = 1_760_000_000 * SECOND;
const START: u64 = 100 * SECOND;

/// How large the node is, and how closely it was watched.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    name: &'static str,
    pub(crate) cores: u32,
    /// Samples of stacks in a second, of each core.
    hz: u64,
    /// Seconds between two looks at a core; a node of two is looked at twice a second.
    every: Option<u64>,
}

/// As a recorder does it.
pub(crate) const SMALL: Plan = Plan {
    name: "bench-page.bundle",
    cores: 2,
    hz: 99,
    every: None,
};

/// Thinner than a recorder would make it, which took an hour to write; what the page shows
/// of it has as many lanes, columns and cells.
pub(crate) const LARGE: Plan = Plan {
    name: "bench-page-96.bundle",
    cores: 96,
    hz: 1,
    every: Some(2),
};

/// A recording, made once.
pub(crate) fn bundle(plan: Plan) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = target.join(plan.name);
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
        let records = records(plan, second);
        n_records += records.len();
        writer.append(&records).expect("room");
        let samples = samples(plan, second);
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
fn records(plan: Plan, second: u64) -> Vec<Record> {
    let start = START + second * SECOND;
    let mut all = Vec::with_capacity(160);
    for tenth in 0..10 {
        let at = Moment::from_ns(start + tenth * SECOND / 10);
        let mut out = Sink::new("cores", at);
        let worst = part(second * 10 + tenth);
        out.sample(&Subject::cpu(0), &core::CORE_WORST_SYSTEM_RATIO, worst);
        let looks = match plan.every {
            None => tenth % 5 == 0,
            Some(every) => tenth == 0 && second.is_multiple_of(every),
        };
        if looks {
            for cpu in 0..plan.cores {
                for (n, fact) in MODES.iter().enumerate() {
                    let seed = second * 31 + tenth + n as u64 + u64::from(cpu);
                    out.sample(&Subject::cpu(cpu), fact, part(seed) / 9.0);
                }
            }
        }
        all.extend(out.into_records());
    }
    let mut out = Sink::new("runq", Moment::from_ns(start));
    for cpu in 0..plan.cores.min(2) {
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
fn samples(plan: Plan, second: u64) -> Vec<StackSample> {
    let mut samples = Vec::new();
    for n in 0..plan.hz {
        for cpu in 0..plan.cores {
            let at = START + second * SECOND + n * SECOND / plan.hz + u64::from(cpu) * 1000;
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
                weight: SECOND / plan.hz,
                stack: StackId((dice >> 8) as u32 % 3000),
            });
        }
    }
    samples
}
