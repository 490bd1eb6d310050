//! The cost of each event that a BPF program sees, measured by the kernel, and of telling
//! it, measured by us. Makes its own cgroups and processes; the rest of the machine counts
//! too, so it should be quiet.
#![allow(clippy::print_stdout, reason = "the result")]

use std::process::Command;
use std::time::{Duration, Instant};

use sexton_bpf::Meter;
use sexton_host::{Host, clock};
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::record::Sink;
use sexton_sensors::{SENSORS, Sensor};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

/// Few enough that each is told by itself, and not in a burst.
const N_CGROUPS: u32 = 2_003;
const N_FAILURES: u32 = 199;

fn main() {
    require(Need::Root);
    require(Need::Bpf);
    let meter = Meter::start().expect("the kernel measures");
    let host = Host::live().expect("a mount table");
    measure(&meter, &host, "cgroups", make_cgroups);
    measure(&meter, &host, "exits", || fail("exit 41"));
    measure(&meter, &host, "exits", || fail("exit 0"));
}

fn measure(meter: &Meter, host: &Host, name: &'static str, trouble: impl FnOnce()) {
    let spec = SENSORS.iter().find(|spec| spec.name == name);
    let mut sensor = (spec.expect("it is listed").open)(host).expect("it sees");
    let (idle, _) = poll(host, name, sensor.as_mut());
    trouble();
    let (took, n_records) = poll(host, name, sensor.as_mut());
    for cost in meter.read(name).iter().filter(|cost| cost.runs > 0) {
        let each_ns = cost.ns / cost.runs;
        println!(
            "{name}: {:16} {:6} runs, {each_ns:5} ns each, {} missed",
            cost.program, cost.runs, cost.missed
        );
    }
    println!(
        "{name}: a poll with nothing to tell took {idle:?}; one of {n_records} records {took:?}"
    );
}

fn poll(host: &Host, name: &'static str, sensor: &mut dyn Sensor) -> (Duration, usize) {
    let mut sink = Sink::new(name, clock::now());
    let began = Instant::now();
    sensor.poll(host, &mut sink);
    (began.elapsed(), sink.into_records().len())
}

fn make_cgroups() {
    let nursery = Nursery::new("events").expect("a cgroup of our own");
    let leak = nursery.leak(LEAKER, "z", N_CGROUPS, Pin::Tmpfs);
    drop(leak.expect("made"));
}

fn fail(how: &str) {
    let script = format!("i=0; while [ $i -lt {N_FAILURES} ]; do ({how}); i=$((i + 1)); done");
    let status = Command::new("sh").args(["-c", &script]).status();
    assert!(status.expect("it runs").success());
}
