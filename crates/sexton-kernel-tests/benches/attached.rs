//! What the sensors that stay attached cost: nanoseconds per event, counted by the kernel
//! itself, and processor time of two tasks that wake each other with and without them.
//!
//! `cargo xtask bench attached` prints the tables of `docs/overhead.md`.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use sexton_bpf::stats::Counting;
use sexton_host::{Host, clock};
use sexton_model::record::Sink;
use sexton_sensors::{SENSORS, Sensor, SensorSpec};

const WINDOW: Duration = Duration::from_secs(2);

/// Measured so often without and with a sensor, in turns.
const N_ROUNDS: usize = 5;

fn main() -> Result<()> {
    let host = Host::live().context("cannot read this node")?;
    for name in ["napi", "runq"] {
        let spec = SENSORS.iter().find(|spec| spec.name == name);
        measure(spec.context("no such sensor")?, &host)?;
    }
    Ok(())
}

fn measure(spec: &SensorSpec, host: &Host) -> Result<()> {
    let mut polls = Vec::new();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..N_ROUNDS {
        without.push(under_load(|| {})?);
        let mut sensor = open(spec, host)?;
        with.push(under_load(|| {
            poll(spec, host, sensor.as_mut(), &mut polls)
        })?);
    }
    let mut sensor = open(spec, host)?;
    let counting = Counting::start().context("the kernel does not count")?;
    under_load(|| poll(spec, host, sensor.as_mut(), &mut polls))?;
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
    let (without, with) = (median(without), median(with));
    println!(
        "\nOne poll takes {mean:.1?}, every {:?}. A switch and a wake-up of two tasks that only\n\
         wake each other take {} ns of processor time without it and {} ns with it:\n\
         {:.1} % more, the median of {N_ROUNDS} times each, in turns.",
        spec.every,
        without.as_nanos(),
        with.as_nanos(),
        100.0 * (with.as_secs_f64() / without.as_secs_f64() - 1.0),
    );
    Ok(())
}

fn open(spec: &SensorSpec, host: &Host) -> Result<Box<dyn Sensor>> {
    match (spec.open)(host) {
        Ok(sensor) => Ok(sensor),
        Err(gap) => bail!("{} cannot see here: {}", spec.name, gap.text),
    }
}

fn poll(spec: &SensorSpec, host: &Host, sensor: &mut dyn Sensor, polls: &mut Vec<Duration>) {
    let began = Instant::now();
    let mut sink = Sink::new(spec.name, clock::now());
    sensor.poll(host, &mut sink);
    polls.push(began.elapsed());
    thread::sleep(spec.every.saturating_sub(began.elapsed()));
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Processor time of a switch and a wake-up, of two tasks that did nothing else, while
/// packets flowed too. Not their pace, which others on the machine have a part in.
fn under_load(mut each: impl FnMut()) -> Result<Duration> {
    let done = AtomicBool::new(false);
    let (mut to, mut from) = (pipe()?, pipe()?);
    thread::scope(|scope| {
        let answerer = scope.spawn(|| answer(&mut to.0, &mut from.1));
        let asker = scope.spawn(|| ask(&mut from.0, &mut to.1, &done));
        scope.spawn(|| send_packets(&done));
        let until = Instant::now() + WINDOW;
        while Instant::now() < until {
            each();
            if Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
        }
        done.store(true, Ordering::Relaxed);
        let failed = |_| anyhow::anyhow!("a task failed");
        let (rounds, asking) = asker.join().map_err(failed)??;
        let answering = answerer.join().map_err(failed)?;
        // Each of the two is switched to and woken once a round.
        Ok((asking + answering) / (2 * rounds.max(1)))
    })
}

/// Rounds, and the processor time of this thread.
fn ask(from: &mut PipeReader, to: &mut PipeWriter, done: &AtomicBool) -> Result<(u32, Duration)> {
    let (mut byte, mut rounds) = ([1], 0);
    while !done.load(Ordering::Relaxed) {
        to.write_all(&byte)?;
        from.read_exact(&mut byte)?;
        rounds += 1;
    }
    to.write_all(&[0]).context("cannot end it")?;
    Ok((rounds, processor_time()))
}

/// Ends at a zero, or when the other side is gone. Returns the processor time of this thread.
fn answer(from: &mut PipeReader, to: &mut PipeWriter) -> Duration {
    let mut byte = [1];
    while from.read_exact(&mut byte).is_ok() && byte[0] != 0 && to.write_all(&byte).is_ok() {}
    processor_time()
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
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
