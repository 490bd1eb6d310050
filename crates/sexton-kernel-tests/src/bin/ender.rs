//! Ends in a known way: `ender CGROUP HOW`.
//!
//! It enters the cgroup, starts a few threads, and then ends: with a status (`3`), by a
//! signal (`segv`, `kill`), or because it asks for more memory than there is (`oom`).

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, getpid, kill_process};

/// Threads that end with it.
const N_THREADS: u32 = 7;

/// More than any test allows it.
const TOO_MUCH_BYTES: usize = 256 << 20;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [cgroup, how] = &args[..] else {
        bail!("usage: ender CGROUP HOW");
    };
    fs::write(Path::new(cgroup).join("cgroup.procs"), "0")
        .with_context(|| format!("cannot enter {cgroup}"))?;
    for _ in 0..N_THREADS {
        thread::spawn(|| thread::sleep(Duration::from_secs(60)));
    }
    match how.as_str() {
        // Rust's own handler takes the first one, and puts the default back.
        "segv" => loop {
            kill_process(getpid(), Signal::SEGV)?;
            thread::sleep(Duration::from_millis(1));
        },
        "kill" => kill_process(getpid(), Signal::KILL)?,
        "oom" => drop(black_box(vec![1_u8; TOO_MUCH_BYTES])),
        status => std::process::exit(status.parse().context("HOW is no status")?),
    }
    thread::sleep(Duration::from_secs(60));
    bail!("still here")
}
