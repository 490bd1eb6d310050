//! What a gate costs whoever waits for it: one `sexton check` from its start to its end, a
//! new process each time, on this machine and on a node that systemd has just booted, in
//! namespaces. `cargo xtask bench check`, as root; `-- --write` puts the figures into
//! docs/benchmarks.md.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use sexton_kernel_tests::page;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::systemd::Systemd;

/// Runs of each; the median is not moved by a few that were disturbed.
const N: usize = 31;

/// What a gate may take.
const LIMIT: Duration = Duration::from_millis(200);

/// What is measured; the last is what starting the process costs.
const COMMANDS: &[&[&str]] = &[
    &["check"],
    &["check", "--only", "memory_cgroups"],
    &["--version"],
];

/// Has this program print the laps of the binary that follows.
const LAPS: &str = "--laps";

/// The times of one command on one machine, in the order they were taken.
type Laps = Vec<Duration>;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    if args.any(|arg| arg == LAPS) {
        let sexton = args.next().context("a binary follows")?;
        return print_laps(&sexton);
    }
    let sexton = std::env::var("SEXTON").context("SEXTON names the binary")?;
    let mut lines = String::from(
        "| where | command | first | best | median | worst | limit |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut is_over = false;
    for (machine, laps) in [
        ("this machine", laps_of(&sexton)?),
        ("a node with systemd", laps_below_systemd(&sexton)?),
    ] {
        for (args, laps) in COMMANDS.iter().zip(laps) {
            let limit = (args[0] == "check").then_some(LIMIT);
            is_over |= limit.is_some_and(|limit| median(&laps) > limit);
            lines.push_str(&row(machine, args, &laps, limit));
        }
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let section = format!(
        "{} cores, Linux {}, a release build, {N} runs each, a new process each time.\n\n{lines}",
        std::thread::available_parallelism()?,
        kernel.trim()
    );
    println!("{section}");
    if std::env::args().any(|arg| arg == "--write") {
        page::write("check", &section)?;
    }
    ensure!(!is_over, "the median of a check is over {}", ms(LIMIT));
    Ok(())
}

fn row(machine: &str, args: &[&str], laps: &Laps, limit: Option<Duration>) -> String {
    format!(
        "| {machine} | `sexton {}` | {} | {} | {} | {} | {} |\n",
        args.join(" "),
        ms(laps[0]),
        ms(laps.iter().copied().min().unwrap_or_default()),
        ms(median(laps)),
        ms(laps.iter().copied().max().unwrap_or_default()),
        limit.map(ms).unwrap_or_default()
    )
}

fn median(laps: &Laps) -> Duration {
    let mut sorted = laps.clone();
    sorted.sort();
    sorted[N / 2]
}

fn laps_of(sexton: &str) -> Result<Vec<Laps>> {
    let laps = |args: &&[&str]| (0..N).map(|_| lap(sexton, args)).collect();
    COMMANDS.iter().map(laps).collect()
}

/// The same, by this very program, where systemd has units and a bus.
fn laps_below_systemd(sexton: &str) -> Result<Vec<Laps>> {
    require(Need::Systemd);
    let this = std::env::current_exe()?;
    let name = Path::file_name(&this).context("a program has a name")?;
    let job = format!("./{} {LAPS} ./sexton > laps", name.display());
    let this = this.to_str().context("a path in plain text")?;
    let node = Systemd::run(&[], &[this, sexton], &job, Duration::from_secs(300))?;
    let laps = node.read("laps")?;
    let lines = laps.lines().map(|line| {
        let nanoseconds = line.split(' ').map(str::parse);
        let laps = nanoseconds.map(|ns| Ok(Duration::from_nanos(ns?)));
        laps.collect()
    });
    lines.collect()
}

/// A line of nanoseconds for each command.
fn print_laps(sexton: &str) -> Result<()> {
    for laps in laps_of(sexton)? {
        let line: Vec<String> = laps.iter().map(|lap| lap.as_nanos().to_string()).collect();
        println!("{}", line.join(" "));
    }
    Ok(())
}

fn lap(sexton: &str, args: &[&str]) -> Result<Duration> {
    let began = Instant::now();
    let status = Command::new(sexton)
        .args(args)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {sexton}"))?;
    let took = began.elapsed();
    if !matches!(status.code(), Some(0 | 1 | 3)) {
        bail!("sexton {} ended with {status}", args.join(" "));
    }
    Ok(took)
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
