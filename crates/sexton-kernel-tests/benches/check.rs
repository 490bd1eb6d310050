//! What a gate costs whoever waits for it: one `sexton check` from its start to its end, a
//! new process each time. `cargo xtask bench check`, as root or not; `-- --write` puts the
//! figures into docs/benchmarks.md.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
const BEGIN: &str = "<!-- check: begin -->\n";
const END: &str = "<!-- check: end -->";

/// Runs of each; the median is not moved by a few that were disturbed.
const N: usize = 31;

/// What a gate may take.
const LIMIT: Duration = Duration::from_millis(200);

fn main() -> Result<()> {
    let sexton = std::env::var("SEXTON").context("SEXTON names the binary")?;
    let mut lines = String::from(
        "| command | best | median | worst | limit |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    let mut is_over = false;
    for args in [
        &["check"][..],
        &["check", "--only", "memory_cgroups"][..],
        &["--version"][..],
    ] {
        let mut laps = (0..N)
            .map(|_| lap(&sexton, args))
            .collect::<Result<Vec<Duration>>>()?;
        laps.sort();
        let (best, median, worst) = (laps[0], laps[N / 2], laps[N - 1]);
        is_over |= args[0] == "check" && median > LIMIT;
        lines.push_str(&format!(
            "| `sexton {}` | {} | {} | {} | {} |\n",
            args.join(" "),
            ms(best),
            ms(median),
            ms(worst),
            if args[0] == "check" {
                ms(LIMIT)
            } else {
                String::new()
            }
        ));
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let build = match cfg!(debug_assertions) {
        true => "a build without optimization",
        false => "a release build",
    };
    let section = format!(
        "{} cores, Linux {}, {build}, {N} runs each, a new process each time.\n\n{lines}",
        std::thread::available_parallelism()?,
        kernel.trim()
    );
    println!("{section}");
    if std::env::args().any(|arg| arg == "--write") {
        write(&section)?;
    }
    ensure!(!is_over, "the median of a check is over {}", ms(LIMIT));
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

/// Puts the section in place of the old one.
fn write(section: &str) -> Result<()> {
    let path = Path::new(PAGE);
    let page = std::fs::read_to_string(path).with_context(|| format!("cannot read {PAGE}"))?;
    let between = page
        .split_once(BEGIN)
        .and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = between.with_context(|| format!("{PAGE} has no place for the figures"))?;
    std::fs::write(path, format!("{head}{BEGIN}{section}{END}{tail}"))
        .with_context(|| format!("cannot write {PAGE}"))
}
