//! What it takes to free 70,000 dying cgroups of one origin without a reboot, and what a
//! live neighbour keeps of its cache: `cargo xtask bench purge`, as root. `-- --write` puts
//! the figures into docs/benchmarks.md, `-- --own-files` has them held by a file each as
//! well as by one log. `-- --drop-caches` has the usual way beside it,
//! which empties the cache of the whole machine, so it is not done without being asked for.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints what it measured"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sexton_host::Host;
use sexton_host::cgroup::Controller;
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::{cache, page, sexton};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

const N_DYING: u32 = 70_000;

/// What the neighbour has read.
const CACHE_BYTES: usize = 256 << 20;

/// The part of it that must be in the cache before.
const FILLED: f64 = 0.99;

/// What a purge may take: a person waits for it.
const LIMIT: Duration = Duration::from_secs(30);

/// The part of a neighbour's cache that must stay.
const KEPT: f64 = 0.9;

/// The part that may be left: blocks of the filesystem's own, with the inodes of 16 files
/// each, hold whoever touched them first. No file leads to them.
const LEFT: f64 = 0.1;

/// The kernel lets go in its own time; when fewer and fewer are not left for so long, it is done.
const STANDSTILL: Duration = Duration::from_secs(10);

/// The longest wait for the kernel to let go after `drop_caches`.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Args {
    write: bool,
    drop_caches: bool,
    own_files: bool,
    /// Cargo says so when it runs benches; it builds them for other reasons too.
    bench: bool,
}

/// One way to be rid of them.
struct Way {
    pin: Pin,
    name: &'static str,
    took: Duration,
    predicted: Option<u64>,
    freed: u64,
    left: u64,
    /// The part of the neighbour's cache that is still there.
    kept: f64,
    /// Page cache of the whole machine that is gone, beside what held them.
    lost_bytes: u64,
}

impl Way {
    /// Limits are ours; the other way is there to compare with.
    fn holds(&self) -> bool {
        let left = self.left as f64 / f64::from(N_DYING);
        self.predicted.is_none() || (self.took <= LIMIT && self.kept >= KEPT && left <= LEFT)
    }
}

fn main() -> Result<ExitCode> {
    let args = parse()?;
    if !args.bench {
        eprintln!("not measured: run cargo xtask bench purge");
        return Ok(ExitCode::SUCCESS);
    }
    for need in [
        Need::Root,
        Need::Bpf,
        Need::Sexton,
        Need::Program("fincore"),
    ] {
        require(need);
    }
    let mut ways = Vec::new();
    let pins: &[Pin] = match args.own_files {
        true => &[Pin::SharedLog, Pin::OwnFile],
        false => &[Pin::SharedLog],
    };
    for pin in pins.iter().copied() {
        ways.push(with_trouble(pin, by_sexton)?);
        if args.drop_caches {
            ways.push(with_trouble(pin, by_drop_caches)?);
        }
    }
    let section = section(&ways, args.drop_caches)?;
    println!("{section}");
    if args.write {
        page::write("purge", &section)?;
    }
    let over: Vec<&Way> = ways.iter().filter(|way| !way.holds()).collect();
    for way in &over {
        eprintln!("over a limit: {}, held by {}", way.name, held_by(way.pin));
    }
    Ok(match over.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn held_by(pin: Pin) -> &'static str {
    match pin {
        Pin::SharedLog => "one log",
        _ => "a file each",
    }
}

fn parse() -> Result<Args> {
    let mut parsed = Args::default();
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--bench" => parsed.bench = true,
            "--write" => parsed.write = true,
            "--drop-caches" => parsed.drop_caches = true,
            "--own-files" => parsed.own_files = true,
            other => {
                bail!("unknown argument {other}; there are --write, --own-files and --drop-caches")
            }
        }
    }
    Ok(parsed)
}

/// Makes the trouble anew, and has it ended in one way.
fn with_trouble(pin: Pin, end: impl Fn(&Nursery, &Path, Pin) -> Result<Way>) -> Result<Way> {
    let nursery = Nursery::new("bench-purge")?;
    // First, because reading that much may make the kernel reclaim, and it begins with the
    // pages of dying cgroups.
    let cached = cache::fill(&nursery, "neighbour", CACHE_BYTES)?;
    eprintln!(
        "purge: making {N_DYING} dying cgroups, held by {}",
        held_by(pin)
    );
    drop(nursery.leak(LEAKER, "z", N_DYING, pin)?);
    // A kernel may take some of it back in all that time.
    if cache::share(&cached)? <= FILLED {
        cache::fill_again(&cached, &nursery.cgroup.join("neighbour"))?;
    }
    let share = cache::share(&cached)?;
    ensure!(share > FILLED, "the neighbour has only {share:.2} cached");
    eprintln!("purge: ending it");
    end(&nursery, &cached, pin)
}

fn by_sexton(nursery: &Nursery, cached: &Path, pin: Pin) -> Result<Way> {
    let before = page_cache_bytes()?;
    let began = Instant::now();
    let output = Command::new(sexton::binary().context("SEXTON names the binary")?)
        .args(["fix", "--json", "--apply", "--yes", "--origin"])
        .arg(format!("{}/z-<n>", nursery.path))
        .output()
        .context("cannot start sexton")?;
    let took = began.elapsed();
    let report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let number = |pointer: &str| {
        let number = report.pointer(pointer).and_then(Value::as_u64);
        number.with_context(|| format!("no {pointer} in {report:#}"))
    };
    let (n_before, left) = (number("/before")?, number("/after")?);
    ensure!(
        n_before as f64 >= f64::from(N_DYING) * 0.99,
        "the kernel had let go of all but {n_before} by itself; it needs more free memory"
    );
    for step in report["steps"].as_array().into_iter().flatten() {
        eprintln!("purge: {step}");
    }
    Ok(Way {
        pin,
        name: "`sexton fix --origin … --apply --yes`",
        took,
        predicted: Some(number("/steps/0/predicted")?),
        freed: n_before - left,
        left,
        kept: cache::share(cached)?,
        lost_bytes: lost_since(before)?,
    })
}

fn by_drop_caches(_: &Nursery, cached: &Path, pin: Pin) -> Result<Way> {
    let before = page_cache_bytes()?;
    let n_before = n_cgroups()?;
    let began = Instant::now();
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "1").context("cannot drop caches")?;
    let mut last = (n_cgroups()?, Instant::now());
    // As long as fewer and fewer are left the kernel is not done.
    while last.1.elapsed() < STANDSTILL && began.elapsed() < LONGEST_WAIT {
        thread::sleep(Duration::from_millis(50));
        let now = n_cgroups()?;
        if now < last.0 {
            last = (now, Instant::now());
        }
    }
    let freed = n_before.saturating_sub(last.0);
    Ok(Way {
        pin,
        name: "`sync; echo 1 > /proc/sys/vm/drop_caches`",
        took: last.1 - began,
        predicted: None,
        freed,
        left: u64::from(N_DYING).saturating_sub(freed),
        kept: cache::share(cached)?,
        lost_bytes: lost_since(before)?,
    })
}

/// All memory cgroups that the kernel counts.
fn n_cgroups() -> Result<u64> {
    let memory = Controller::memory(&Host::live()?)?;
    Ok(memory.context("no memory controller")?.n_cgroups)
}

fn page_cache_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Cached:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.context("/proc/meminfo has no Cached:")? << 10)
}

/// What the machine lost since then, without what held them, which had to go.
fn lost_since(before: u64) -> Result<u64> {
    let held = u64::from(N_DYING) << 12;
    Ok(before.saturating_sub(page_cache_bytes()? + held))
}

fn section(ways: &[Way], with_drop_caches: bool) -> Result<String> {
    let mut text = format!(
        "{} cores, Linux {}. Limits: {} s, {:.0} % of the neighbour's cache kept.\n\n\
         | held by | way | time | freed (predicted) | left | neighbour's cache kept | other cache lost |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
        thread::available_parallelism()?,
        fs::read_to_string("/proc/sys/kernel/osrelease")?.trim(),
        LIMIT.as_secs(),
        KEPT * 100.0
    );
    for way in ways {
        let predicted = way.predicted.map(|n| format!(" ({n})"));
        text.push_str(&format!(
            "| {} | {} | {:.1} s | {}{} | {} | {:.1} % | {} MiB |\n",
            held_by(way.pin),
            way.name,
            way.took.as_secs_f64(),
            way.freed,
            predicted.unwrap_or_default(),
            way.left,
            way.kept * 100.0,
            way.lost_bytes >> 20
        ));
    }
    if !with_drop_caches {
        text.push_str(
            "\n`drop_caches` was not measured beside it: it would have emptied the cache of the whole\n\
             machine. `-- --drop-caches` does it.\n",
        );
    }
    Ok(text)
}
