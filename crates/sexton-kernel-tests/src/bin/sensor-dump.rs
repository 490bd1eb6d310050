//! Runs one sensor and prints its records as lines of JSON:
//! `sensor-dump SENSOR SECONDS [EVERY_MS]`.
//!
//! After the last poll it prints the CPU time that this process has used.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use sexton_host::{Host, clock};
use sexton_kernel_tests::dump;
use sexton_model::record::Sink;
use sexton_sensors::SENSORS;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, seconds, every) = match &args[..] {
        [name, seconds] => (name, seconds, None),
        [name, seconds, every] => (name, seconds, Some(every)),
        _ => bail!("usage: sensor-dump SENSOR SECONDS [EVERY_MS]"),
    };
    let spec = SENSORS.iter().find(|spec| spec.name == *name);
    let spec = spec.with_context(|| format!("there is no sensor {name}"))?;
    let seconds: f64 = seconds.parse().context("SECONDS is no number")?;
    let every = match every {
        Some(every) => Duration::from_millis(every.parse().context("EVERY_MS is no number")?),
        None => spec.every,
    };
    let host = Host::live()?;
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut sensor = match (spec.open)(&host) {
        Ok(sensor) => sensor,
        Err(gap) => bail!("sensor {name} cannot run here: {}", gap.text),
    };
    loop {
        let mut out = Sink::new(spec.name, clock::now());
        sensor.poll(&host, &mut out);
        for record in out.into_records() {
            println!("{}", dump::line(&record));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(every));
    }
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used_ns = used.tv_sec * 1_000_000_000 + used.tv_nsec;
    println!("{}", json!({ "cpu_ns": used_ns, "seconds": seconds }));
    Ok(())
}
