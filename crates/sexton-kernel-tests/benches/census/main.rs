//! What a census costs: `cargo xtask bench census [-- --write] [--date DAY]`.
//!
//! Makes 1,000, 10,000 and 70,000 dying cgroups and measures sexton next to
//! something simpler that does part of its work, in turns, on the same cgroups.
//! Fails when a ratio or a count is over its limit; a time by itself never fails.
//! `--write` puts the figures into docs/benchmarks.md.
#![allow(unsafe_code, reason = "the skeleton of the BPF program is generated")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its answer")]

mod bare;
mod commands;
mod figures;
mod kernel_memory;
mod page;
mod stages;
mod walks;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

/// What the caller asked for.
#[derive(Default)]
struct Args {
    write: bool,
    date: Option<String>,
    /// Cargo says so when it runs benches; it builds them for other reasons too.
    bench: bool,
}

fn main() -> Result<ExitCode> {
    let args = parse()?;
    if !args.bench {
        eprintln!("not measured: run cargo xtask bench census");
        return Ok(ExitCode::SUCCESS);
    }
    let figures = stages::measure()?;
    let date = match args.date {
        Some(date) => date,
        None => commands::today()?,
    };
    let text = page::section(&figures, &date);
    println!("\n{text}");
    if args.write {
        page::write(&text)?;
    }
    let failed: Vec<_> = figures
        .checks()
        .into_iter()
        .filter(|c| !c.holds())
        .collect();
    for check in &failed {
        eprintln!(
            "over the limit: {}: {:.2} > {}",
            check.what, check.value, check.limit
        );
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn parse() -> Result<Args> {
    let mut parsed = Args::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => parsed.bench = true,
            "--write" => parsed.write = true,
            "--date" => parsed.date = Some(args.next().context("--date needs a day")?),
            other => bail!("unknown argument {other}; there are --write and --date DAY"),
        }
    }
    Ok(parsed)
}
