//! What sampling stacks costs, next to `perf record` on the same run: processor time,
//! memory, bytes a sample; and by a BPF program next to events of perf. `cargo xtask bench stacks [-- SECONDS] [--write]`, as root.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

mod samplers;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sexton_bpf::Meter;
use sexton_kernel_tests::page;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::spinner::Spinner;
use sexton_kernel_tests::storm::{Kind, Storm};
use sexton_store::{Bundle, StackPiece};

const SECONDS: u64 = 60;
/// What a recorder does when it starts is shown apart: it loads programs, reads tables of
/// symbols, and makes four of the censuses that come every five minutes later.
const BEGUN: Duration = Duration::from_secs(42);
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
    let text = run(&folder, seconds);
    fs::remove_dir_all(&folder).context("cannot remove our own folder")?;
    let text = text?;
    println!("{text}");
    if std::env::args().any(|arg| arg == "--write") {
        page::write("stacks", &text)?;
    }
    Ok(())
}

fn run(folder: &Path, seconds: u64) -> Result<String> {
    let spinner = Spinner::build("bench");
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut text = format!(
        "{cores} cores, Linux {}, {seconds} s each, {HZ} samples a second on each core.\n\n\
         | beside `perf record -a -g` | `perf.data` | sexton | ratio |\n\
         | --- | ---: | ---: | ---: |\n",
        kernel.trim()
    );
    for (load, ms) in [
        ("the node as it is", 0),
        ("a busy core", seconds * 1000 + 3000),
    ] {
        let spinning = (ms > 0).then(|| spinner.start(1, &["shares", &ms.to_string()]));
        text += &beside_perf(folder, seconds, load)?;
        if let Some(spinning) = spinning {
            spinning.join();
        }
    }
    let _ = write!(
        text,
        "\n| recorder alone | CPU of a core after {} s | before that | peak memory | in the kernel, a sample |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
        BEGUN.as_secs()
    );
    let stacks = &["--sensors", "stacks"][..];
    for (what, may_use_bpf, args) in [
        ("stacks", true, stacks),
        ("stacks, without BPF", false, stacks),
        ("all but stacks", true, &["--no-stacks"]),
        ("everything", true, &[]),
    ] {
        let recorder = recorder(may_use_bpf)?;
        text += &alone(recorder, folder, BEGUN.as_secs() + seconds, what, args)?;
    }
    for (kind, work_us) in [(Kind::Fork, 200), (Kind::Exec, 1000)] {
        text += &in_storm(folder, seconds, kind, work_us)?;
    }
    text += "\n";
    text += &samplers::table()?;
    Ok(text)
}

/// Both at the same time, so that both see the same.
fn beside_perf(folder: &Path, seconds: u64, load: &str) -> Result<String> {
    let (data, bundle) = (folder.join("perf.data"), folder.join("both"));
    let perf = Command::new("perf")
        .args(["record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", HZ])
        .arg("-o")
        .arg(&data)
        .args(["--", "sleep", &seconds.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start perf")?;
    record(recorder(true)?, &bundle, seconds, &["--sensors", "stacks"])?.join(seconds)?;
    let ended = wait(perf)?;
    ensure!(ended, "perf failed");
    let perf_bytes = fs::metadata(&data).context("perf wrote nothing")?.len();
    let n_perf = perf_samples(&data)?;
    let ours = stored(&bundle)?;
    let per = |bytes: u64, n: u64| bytes as f64 / n.max(1) as f64;
    let (theirs, own) = (per(perf_bytes, n_perf), per(ours.bytes, ours.n_samples));
    fs::remove_dir_all(&bundle).context("cannot remove a bundle")?;
    Ok(format!(
        "| {load}, {n_perf} and {} samples ({} idle) | {theirs:.0} bytes a sample | {own:.1} | 1/{:.0} |\n",
        ours.n_samples,
        ours.n_idle,
        theirs / own
    ))
}

fn alone(
    recorder: Command,
    folder: &Path,
    seconds: u64,
    what: &str,
    args: &[&str],
) -> Result<String> {
    let bundle = folder.join("alone");
    let meter = Meter::start().context("the kernel does not measure BPF programs")?;
    let recording = record(recorder, &bundle, seconds, args)?;
    // The programs are gone when it ends.
    std::thread::sleep(Duration::from_secs(seconds.saturating_sub(2)));
    let costs = meter.read("stacks_");
    let used = recording.join(seconds)?;
    let cost = costs.iter().find(|cost| cost.runs > 0);
    let kernel = cost.map_or(String::new(), |cost| {
        format!("{:.1} us", cost.ns as f64 / cost.runs as f64 / 1000.0)
    });
    fs::remove_dir_all(&bundle).context("cannot remove a bundle")?;
    Ok(format!(
        "| {what} | {:.2} % | {:.2} % | {:.1} MiB | {kernel} |\n",
        used.steady_percent,
        used.begin_percent,
        used.peak_kib as f64 / 1024.0
    ))
}

/// The recorder alone while processes start and exit within a millisecond, one after another.
fn in_storm(folder: &Path, seconds: u64, kind: Kind, work_us: u32) -> Result<String> {
    let storm = Storm::build("bench");
    let whole = BEGUN.as_secs() + seconds;
    let ms = u32::try_from(whole * 1000)?;
    let recorder = recorder(true)?;
    let child = storm.start(kind, ms, work_us);
    let stacks = &["--sensors", "stacks"];
    let row = alone(recorder, folder, whole, "STORM", stacks);
    let said = child.wait_with_output().context("cannot wait for it")?;
    let n: u64 = String::from_utf8_lossy(&said.stdout).trim().parse()?;
    let what = match kind {
        Kind::Fork => "processes fork",
        Kind::Exec => "programs start",
    };
    let what = format!("stacks, while {} {what} each second", n / whole);
    Ok(row?.replace("STORM", &what))
}

/// A recorder at work, with a thread that looks at it meanwhile.
struct Recording {
    child: Child,
    looking: std::thread::JoinHandle<Result<Used>>,
}

/// What one has used.
struct Used {
    /// After it had begun, and before.
    steady_percent: f64,
    begin_percent: f64,
    peak_kib: u64,
}

/// Sexton, or sexton that the kernel refuses BPF.
fn recorder(may_use_bpf: bool) -> Result<Command> {
    let sexton = std::env::var_os("SEXTON").map(PathBuf::from);
    let sexton = sexton.context("SEXTON is not set: run cargo xtask bench stacks")?;
    if may_use_bpf {
        return Ok(Command::new(sexton));
    }
    // It becomes sexton, so that it is the same process.
    let mut refused = Command::new(env!("CARGO_BIN_EXE_without-bpf"));
    refused.arg(sexton);
    Ok(refused)
}

fn record(mut recorder: Command, bundle: &Path, seconds: u64, args: &[&str]) -> Result<Recording> {
    let child = recorder
        .args(["record", "--for", &format!("{seconds}s"), "-o"])
        .arg(bundle)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the recorder")?;
    let pid = child.id();
    let looking = std::thread::spawn(move || look(pid, Duration::from_secs(seconds)));
    Ok(Recording { child, looking })
}

/// Looks at a process once it has begun, and just before it ends.
fn look(pid: u32, length: Duration) -> Result<Used> {
    let began = Instant::now();
    // Beside perf nobody asks for it.
    std::thread::sleep(BEGUN.min(length / 2));
    let (cpu_begun, at_begun) = (cpu(pid)?, began.elapsed());
    std::thread::sleep((length - Duration::from_secs(1)).saturating_sub(began.elapsed()));
    let (cpu, at) = (cpu(pid)?, began.elapsed());
    let percent = |cpu: Duration, time: Duration| cpu.as_secs_f64() / time.as_secs_f64() * 100.0;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok());
    Ok(Used {
        steady_percent: percent(cpu.saturating_sub(cpu_begun), at - at_begun),
        begin_percent: percent(cpu_begun, at_begun),
        peak_kib: peak.context("the kernel does not say how much memory it had")?,
    })
}

/// The processor time of all threads of a process, by the kernel's own clock.
fn cpu(pid: u32) -> Result<Duration> {
    let mut ns = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile; those that seal take little.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else {
            continue;
        };
        let first = text.split_whitespace().next();
        ns += first.and_then(|ns| ns.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(ns))
}

impl Recording {
    fn join(mut self, seconds: u64) -> Result<Used> {
        let used = self.looking.join();
        let ended = self.child.wait().context("cannot wait for it")?;
        ensure!(
            ended.success(),
            "the recorder of {seconds} s ended with {ended}"
        );
        used.map_err(|_| anyhow::anyhow!("whoever looked at the recorder panicked"))?
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
