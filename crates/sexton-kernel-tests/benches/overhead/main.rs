//! What watching costs: `cargo xtask bench overhead [-- --write] [--seconds N]`.
//!
//! First what one poll of some sensors costs. Then, as root, the whole recorder with all
//! its sensors but stacks beside other recorders, all of them at the same time, on the node
//! as it is and with 10,000 dying cgroups. `--write` puts that into docs/benchmarks.md.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its answer")]

mod page;
mod peers;
mod polls;
mod recorder;

use std::time::Duration;

use anyhow::{Context, Result, bail};

struct Args {
    write: bool,
    window: Duration,
    /// Cargo says so when it runs benches; it builds them for other reasons too.
    bench: bool,
}

fn main() -> Result<()> {
    let args = parse()?;
    if !args.bench {
        eprintln!("not measured: run cargo xtask bench overhead");
        return Ok(());
    }
    polls::measure_all();
    if !rustix::process::geteuid().is_root() {
        eprintln!("the whole recorder is not measured: run as root");
        return Ok(());
    }
    let figures = recorder::measure(args.window)?;
    let text = page::section(&figures);
    println!("\n{text}");
    if args.write {
        page::write(&text)?;
    }
    Ok(())
}

fn parse() -> Result<Args> {
    let mut parsed = Args {
        write: false,
        window: Duration::from_secs(20),
        bench: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => parsed.bench = true,
            "--write" => parsed.write = true,
            "--seconds" => {
                let seconds = args.next().and_then(|seconds| seconds.parse().ok());
                parsed.window = Duration::from_secs(seconds.context("--seconds needs a number")?);
            }
            other => bail!("unknown argument {other}; there are --write and --seconds N"),
        }
    }
    Ok(parsed)
}
