//! What sampling stacks costs, next to `perf record` on the same run: processor time,
//! memory, bytes a sample. `cargo xtask bench stacks [-- SECONDS]`, as root.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sexton_bpf::Meter;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::spinner::Spinner;
use sexton_store::{Bundle, StackPiece};

const METER: &str = env!("CARGO_BIN_EXE_meter");
const SECONDS: u64 = 60;
const HZ: &str = "99";

fn main() -> Result<()> {
    for need in [
        Need::Root,
        Need::Bpf,
        Need::Program("perf"),
        Need::Program("cc"),
    ] {
        require(need);
    }
    let seconds = std::env::args().find_map(|arg| arg.parse().ok());
    let seconds: u64 = seconds.unwrap_or(SECONDS);
    let folder = std::env::temp_dir().join(format!("sexton-bench-stacks-{}", std::process::id()));
    fs::create_dir_all(&folder).context("cannot make a folder")?;
    let done = run(&folder, seconds);
    fs::remove_dir_all(&folder).context("cannot remove our own folder")?;
    done
}

fn run(folder: &Path, seconds: u64) -> Result<()> {
    let spinner = Spinner::build("bench");
    println!("{seconds} s each, {HZ} Hz a core, with and without a program that is busy\n");
    for (load, ms) in [("as it is", 0), ("a busy core", seconds * 1000 + 3000)] {
        let spinning = (ms > 0).then(|| spinner.start(1, &["shares", &ms.to_string()]));
        beside_perf(folder, seconds, load)?;
        if let Some(spinning) = spinning {
            spinning.join();
        }
    }
    alone(folder, seconds, "stacks alone", &["--sensors", "stacks"])?;
    alone(folder, seconds, "all but stacks", &["--no-stacks"])?;
    alone(folder, seconds, "everything", &[])
}

/// Both at the same time, so that both see the same.
fn beside_perf(folder: &Path, seconds: u64, load: &str) -> Result<()> {
    let (data, bundle) = (folder.join("perf.data"), folder.join("both"));
    let perf = Command::new("perf")
        .args([
            "record",
            "-q",
            "-a",
            "-g",
            "-e",
            "cpu-clock",
            "-F",
            HZ,
            "-o",
        ])
        .arg(&data)
        .args(["--", "sleep", &seconds.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start perf")?;
    let used = record(&bundle, seconds, &["--sensors", "stacks"])?.join()?;
    let ended = wait(perf)?;
    ensure!(ended, "perf failed");
    let perf_bytes = fs::metadata(&data).context("perf wrote nothing")?.len();
    let n_perf = perf_samples(&data)?;
    let ours = stored(&bundle)?;
    let per = |bytes: u64, n: u64| bytes as f64 / n.max(1) as f64;
    let (theirs, own) = (per(perf_bytes, n_perf), per(ours.bytes, ours.n_samples));
    println!("beside perf record, {load}:");
    println!("  perf.data   {n_perf} samples, {theirs:.1} bytes each");
    println!(
        "  sexton      {} samples ({} idle), {own:.1} bytes each: 1/{:.0}",
        ours.n_samples,
        ours.n_idle,
        theirs / own
    );
    println!("  {}", used.text(seconds));
    fs::remove_dir_all(&bundle).context("cannot remove a bundle")
}

fn alone(folder: &Path, seconds: u64, what: &str, args: &[&str]) -> Result<()> {
    let bundle = folder.join("alone");
    let meter = Meter::start().context("the kernel does not measure BPF programs")?;
    let used = record(&bundle, seconds, args)?;
    // The programs are gone when it ends.
    std::thread::sleep(Duration::from_secs(seconds.saturating_sub(2)));
    let costs = meter.read("stacks_");
    let used = used.join()?;
    println!("{what}: {}", used.text(seconds));
    for cost in costs.iter().filter(|cost| cost.runs > 0) {
        let each = cost.ns as f64 / cost.runs as f64 / 1000.0;
        println!("  {}: {} runs of {each:.1} us", cost.program, cost.runs);
    }
    fs::remove_dir_all(&bundle).context("cannot remove a bundle")
}

/// A recorder at work.
struct Recording(Child);

/// What one has used.
struct Used {
    cpu: Duration,
    peak_kib: u64,
}

fn record(bundle: &Path, seconds: u64, args: &[&str]) -> Result<Recording> {
    let sexton = std::env::var_os("SEXTON").map(PathBuf::from);
    let sexton = sexton.context("SEXTON is not set: run cargo xtask bench stacks")?;
    let child = Command::new(METER)
        .arg(sexton)
        .args(["record", "--for", &format!("{seconds}s"), "-o"])
        .arg(bundle)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the meter")?;
    Ok(Recording(child))
}

impl Recording {
    fn join(self) -> Result<Used> {
        let out = self.0.wait_with_output().context("cannot wait for it")?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let numbers: Vec<u64> = said.split_whitespace().flat_map(str::parse).collect();
        let [cpu_us, peak_kib, 0] = numbers[..] else {
            anyhow::bail!("the meter said {said:?}");
        };
        Ok(Used {
            cpu: Duration::from_micros(cpu_us),
            peak_kib,
        })
    }
}

impl Used {
    fn text(&self, seconds: u64) -> String {
        let share = self.cpu.as_secs_f64() / seconds as f64 * 100.0;
        let mib = self.peak_kib as f64 / 1024.0;
        format!("{share:.2} % of a core, {mib:.1} MiB at most")
    }
}

fn wait(mut child: Child) -> Result<bool> {
    Ok(child.wait().context("cannot wait for it")?.success())
}

/// Samples of a file, as perf itself counts them.
fn perf_samples(data: &Path) -> Result<u64> {
    let report = Command::new("perf")
        .args(["report", "--stats", "-i"])
        .arg(data)
        .output()
        .context("cannot start perf")?;
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("SAMPLE events:"));
    let number = line.and_then(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_whitespace().next()?.parse().ok()
    });
    number.context("perf does not say how many samples there are")
}

/// What is in a bundle.
struct Stored {
    n_samples: u64,
    n_idle: u64,
    bytes: u64,
}

fn stored(bundle: &Path) -> Result<Stored> {
    let opened = Bundle::open(bundle).context("cannot open the bundle")?;
    let mut stored = Stored {
        n_samples: 0,
        n_idle: 0,
        bytes: 0,
    };
    for piece in opened.stacks(None) {
        let StackPiece::Chunk(chunk) = piece else {
            anyhow::bail!("a piece is missing: {piece:?}");
        };
        let idle = |sample: &&sexton_model::stack::StackSample| {
            sample.state == sexton_model::stack::CoreState::Idle
        };
        stored.n_samples += chunk.samples.len() as u64;
        stored.n_idle += chunk.samples.iter().filter(idle).count() as u64;
    }
    for file in fs::read_dir(bundle.join("stacks")).context("it has no stacks")? {
        stored.bytes += file?.metadata()?.len();
    }
    Ok(stored)
}
