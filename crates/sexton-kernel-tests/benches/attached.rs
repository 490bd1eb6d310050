//! What the sensors that stay attached cost: nanoseconds per event, counted by the kernel
//! itself, and the throughput of two tasks that wake each other with and without them.
//!
//! `cargo xtask bench attached` prints the tables of `docs/overhead.md`.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sexton_bpf::stats::Counting;
use sexton_host::{Host, clock};
use sexton_model::record::Sink;
use sexton_sensors::{SENSORS, SensorSpec};

const WINDOW: Duration = Duration::from_secs(4);

fn main() -> Result<()> {
    let host = Host::live().context("cannot read this node")?;
    for name in ["napi", "runq"] {
        let spec = SENSORS.iter().find(|spec| spec.name == name);
        measure(spec.context("no such sensor")?, &host)?;
    }
    Ok(())
}

fn measure(spec: &SensorSpec, host: &Host) -> Result<()> {
    let without = under_load(|| {})?;
    let mut sensor = match (spec.open)(host) {
        Ok(sensor) => sensor,
        Err(gap) => bail!("{} cannot see here: {}", spec.name, gap.text),
    };
    let mut polls = Vec::new();
    let mut poll = || {
        let began = Instant::now();
        let mut sink = Sink::new(spec.name, clock::now());
        sensor.poll(host, &mut sink);
        polls.push(began.elapsed());
        thread::sleep(spec.every.saturating_sub(began.elapsed()));
    };
    let with = under_load(&mut poll)?;
    let counting = Counting::start().context("the kernel does not count")?;
    under_load(&mut poll)?;
    println!(
        "\n## {}\n\n| program | runs per second | ns per run |\n| --- | ---: | ---: |",
        spec.name
    );
    for (name, cost) in counting.costs(&format!("{}_", spec.name)) {
        let per_second = cost.n_runs / WINDOW.as_secs();
        let ns = cost.time.as_nanos() / u128::from(cost.n_runs.max(1));
        println!("| `{name}` | {per_second} | {ns} |");
    }
    let mean = polls.iter().sum::<Duration>() / u32::try_from(polls.len())?;
    let lost = 100.0 * (1.0 - with as f64 / without as f64);
    println!(
        "\nOne poll takes {mean:.1?}, every {:?}. Two tasks that only wake each other did {} rounds\n\
         per second without it and {} with it: {lost:.1} % less.",
        spec.every,
        without / WINDOW.as_secs(),
        with / WINDOW.as_secs()
    );
    Ok(())
}

/// Rounds that two tasks made while packets flowed too.
fn under_load(mut each: impl FnMut()) -> Result<u64> {
    let done = AtomicBool::new(false);
    let rounds = AtomicU64::new(0);
    let (mut to, mut from) = (pipe()?, pipe()?);
    thread::scope(|scope| {
        scope.spawn(|| answer(&mut to.0, &mut from.1));
        let asker = scope.spawn(|| ask(&mut from.0, &mut to.1, &done, &rounds));
        scope.spawn(|| send_packets(&done));
        let until = Instant::now() + WINDOW;
        while Instant::now() < until {
            each();
            if Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
        }
        done.store(true, Ordering::Relaxed);
        asker.join().map_err(|_| anyhow::anyhow!("a task failed"))?
    })?;
    Ok(rounds.load(Ordering::Relaxed))
}

fn ask(
    from: &mut PipeReader,
    to: &mut PipeWriter,
    done: &AtomicBool,
    rounds: &AtomicU64,
) -> Result<()> {
    let mut byte = [1];
    while !done.load(Ordering::Relaxed) {
        to.write_all(&byte)?;
        from.read_exact(&mut byte)?;
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    to.write_all(&[0]).context("cannot end it")
}

/// Ends at a zero, or when the other side is gone.
fn answer(from: &mut PipeReader, to: &mut PipeWriter) {
    let mut byte = [1];
    while from.read_exact(&mut byte).is_ok() && byte[0] != 0 && to.write_all(&byte).is_ok() {}
}

fn send_packets(done: &AtomicBool) {
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else {
        return;
    };
    while !done.load(Ordering::Relaxed) {
        let _ = socket.send_to(b"sexton", ("127.0.0.1", 9));
        thread::sleep(Duration::from_micros(100));
    }
}
