//! What one poll of a sensor costs here: `poll_cost SENSOR [POLLS]`.
//!
//! The first poll is told apart, because some sensors read a backlog in it.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use sexton_host::{Host, clock};
use sexton_model::record::Sink;
use sexton_sensors::SENSORS;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().context("which sensor?")?;
    let n_polls: u32 = args.next().map_or(Ok(1000), |n| n.parse())?;
    let host = Host::live()?;
    let spec = SENSORS.iter().find(|spec| spec.name == name);
    let spec = spec.with_context(|| format!("no sensor is called {name}"))?;
    let mut sensor = match (spec.open)(&host) {
        Ok(sensor) => sensor,
        Err(gap) => bail!(gap.text),
    };
    let mut poll = || {
        let mut out = Sink::new(spec.name, clock::now());
        let start = Instant::now();
        sensor.poll(&host, &mut out);
        (start.elapsed(), out.into_records().len())
    };
    let (first, n_first) = poll();
    let polls: Vec<(Duration, usize)> = (0..n_polls).map(|_| poll()).collect();
    let total: Duration = polls.iter().map(|(time, _)| *time).sum();
    let longest = polls.iter().map(|(time, _)| *time).max();
    let n_records: usize = polls.iter().map(|(_, n)| n).sum();
    println!("first poll: {first:?}, {n_first} records");
    println!(
        "{n_polls} more: {:?} each, longest {:?}, {n_records} records",
        total / n_polls.max(1),
        longest.unwrap_or_default()
    );
    Ok(())
}
