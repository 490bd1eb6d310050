//! What a scrape of a large node costs: 192 cores, a NIC with 64 queues, 70,000 dying memory
//! cgroups of 10,000 origins. `cargo run --release -p sexton-export --example scrape_cost`
#![allow(clippy::print_stdout, reason = "it is there to print figures")]

use std::time::Instant;

use sexton_export::{Format, Metrics, Own};
use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_ORIGIN, MemcgOrigin};
use sexton_model::fact::{self, FactKind};
use sexton_model::moment::Moment;
use sexton_model::payload::Structure as _;
use sexton_model::record::{Record, Sink};
use sexton_model::subject::{Subject, SubjectKind};

const N_CORES: u32 = 192;
const N_QUEUES: u32 = 64;
const N_ORIGINS: u64 = 10_000;

fn records() -> Vec<Record> {
    let mut out = Sink::new("large", Moment::from_ns(1));
    for fact in fact::all().filter(|fact| fact.kind != FactKind::Event) {
        let Some(metric) = fact.metric else { continue };
        match metric.labels.first().map(|label| label.name) {
            None => out.sample(&Subject::node(), fact, 7.0),
            Some("core") => (0..N_CORES).for_each(|cpu| {
                out.sample(
                    &Subject::cpu(cpu),
                    fact,
                    f64::from(cpu) / f64::from(N_CORES),
                );
            }),
            Some(_) => (0..N_QUEUES).for_each(|queue| {
                let subject = Subject::new(SubjectKind::Queue, format!("eth0/rx-{queue}"));
                out.sample(&subject, fact, f64::from(queue) * 1e6);
            }),
        }
    }
    out.sample(&Subject::node(), &MEMCG_DYING, 70_000.0);
    for origin in 0..N_ORIGINS {
        let name = format!("/kubepods.slice/pod-{origin}/cri-containerd-<id>.scope");
        let Ok(says) = MemcgOrigin::read(&Vec::new()) else {
            continue;
        };
        let says = MemcgOrigin {
            dying: Some(origin % 15),
            ..says
        };
        let subject = Subject::new(SubjectKind::Cgroup, name);
        out.event(out.now(), &subject, &MEMCG_ORIGIN, says);
    }
    out.into_records()
}

fn main() {
    let mut metrics = Metrics::new(Moment::default());
    let records = records();
    let began = Instant::now();
    records.iter().for_each(|record| metrics.take(record));
    let each = began.elapsed() / u32::try_from(records.len()).unwrap_or(1);
    println!("{} records, {each:?} each", records.len());
    for _ in 0..5 {
        let began = Instant::now();
        let text = metrics.render(&Own::default(), Format::OpenMetrics, Moment::from_ns(2));
        let took = began.elapsed();
        let n_series = text.lines().filter(|line| !line.starts_with('#')).count();
        println!("{n_series} series, {} bytes, {took:?}", text.len());
    }
}
