//! What the agent costs, all the time: `cargo xtask bench agent [-- --write] [--seconds N]`.
//!
//! Everything is on: every sensor, stacks at 99 Hz, judging every 30 s, metrics asked for each
//! 15 s. Beside it, at the same time, what else runs on nodes. On the node as it is, and with
//! 10,000 dying cgroups; each time all of them start anew.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its answer")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use sexton_bpf::stats::Counting;
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::recorders::{Recorder, scrape};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

/// Dying cgroups of the second half.
const N_DYING: u32 = 10_000;

/// Getting ready, and the four censuses of the first half minute.
const WARM_UP: Duration = Duration::from_secs(45);

/// As most Prometheus servers ask.
const SCRAPE_EVERY: Duration = Duration::from_secs(15);

/// Ports that no service is known to use.
const AGENT: &str = "127.0.0.1:39101";
const NODE_EXPORTER: &str = "127.0.0.1:39100";

/// How the names of our programs in the kernel begin.
const PROGRAMS: [&str; 6] = ["cgroups_", "exits_", "memcg_", "napi_", "runq_", "stacks_"];

/// What the agent may cost by default: of one core, and in MiB.
const CPU_LIMIT_PERCENT: f64 = 1.0;
const RSS_LIMIT_MIB: f64 = 40.0;

/// What one recorder cost.
#[derive(Clone, Copy)]
struct Cost {
    cpu_percent: f64,
    bpf_percent: f64,
    rss_mib: f64,
}

/// What was measured at once.
struct Round {
    costs: Vec<(&'static str, Cost)>,
    /// Threads of the agent, and what each took.
    threads: Vec<(String, f64)>,
}

struct Args {
    window: Duration,
    /// Only without, or only with dying cgroups.
    only: Option<bool>,
    /// Cargo says so when it runs benches; it builds them for other reasons too.
    bench: bool,
}

fn main() -> Result<()> {
    let args = parse()?;
    if !args.bench {
        eprintln!("not measured: run cargo xtask bench agent");
        return Ok(());
    }
    ensure!(
        rustix::process::geteuid().is_root(),
        "only root can have all sensors see: run it as root"
    );
    let mut rounds = Vec::new();
    for with_dying in [false, true] {
        if args.only.is_none_or(|only| only == with_dying) {
            rounds.push((with_dying, measure(with_dying, args.window)?));
        }
    }
    print!("{}", told(&rounds, args.window));
    Ok(())
}

fn parse() -> Result<Args> {
    let mut parsed = Args {
        window: Duration::from_secs(60),
        only: None,
        bench: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--bench" => parsed.bench = true,
            "--quiet" => parsed.only = Some(false),
            "--dying" => parsed.only = Some(true),
            "--seconds" => {
                let seconds = args.next().and_then(|seconds| seconds.parse().ok());
                parsed.window = Duration::from_secs(seconds.context("--seconds needs a number")?);
            }
            other => bail!("unknown argument {other}; there are --quiet, --dying and --seconds N"),
        }
    }
    Ok(parsed)
}

fn measure(with_dying: bool, window: Duration) -> Result<Round> {
    let nursery = Nursery::new("agent-bench")?;
    // Files on a disk would be written back while we measure, which is work of the node.
    let n_dying = if with_dying { N_DYING } else { 1 };
    let leak = nursery.leak(LEAKER, "dead", n_dying, Pin::Tmpfs)?;
    let folder = std::env::temp_dir().join(format!("sexton-agent-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    eprintln!("{n_dying} dying cgroups: getting ready, then {window:?}");
    let round = measure_in(&folder, window);
    fs::remove_dir_all(&folder).ok();
    drop(leak);
    round
}

fn measure_in(folder: &Path, window: Duration) -> Result<Round> {
    let counting = Counting::start().context("the kernel does not count what BPF costs")?;
    let recorders = start_all(folder)?;
    thread::sleep(WARM_UP);
    ensure!(scrape(AGENT)? > 1_000, "the agent answers no metrics");
    let cpu = |recorder: &Recorder| recorder.cpu();
    let before = recorders.iter().map(cpu).collect::<Result<Vec<_>>>()?;
    let (bpf_before, threads_before) = (bpf_time(&counting), threads(&recorders[0])?);
    let began = Instant::now();
    thread::sleep(window);
    let took = began.elapsed();
    let percent = |time: Duration| 100.0 * time.as_secs_f64() / took.as_secs_f64();
    let bpf = percent(bpf_time(&counting).saturating_sub(bpf_before));
    let mut costs = Vec::new();
    for (nth, (recorder, before)) in recorders.iter().zip(before).enumerate() {
        let cost = Cost {
            cpu_percent: percent(recorder.cpu()?.saturating_sub(before)),
            // Ours is the first.
            bpf_percent: if nth == 0 { bpf } else { 0.0 },
            rss_mib: recorder.rss_mib()?,
        };
        costs.push((recorder.name, cost));
    }
    let used = threads(&recorders[0])?.into_iter().map(|(name, time)| {
        let before = threads_before.get(&name).copied().unwrap_or_default();
        (name, percent(time.saturating_sub(before)))
    });
    let mut threads: Vec<(String, f64)> = used.collect();
    threads.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Ok(Round { costs, threads })
}

/// Starts them all; those that cannot are told, and left out.
fn start_all(folder: &Path) -> Result<Vec<Recorder>> {
    let sexton = std::env::var("SEXTON").context("SEXTON does not say where it is")?;
    let config = folder.join("agent.toml");
    // The budget of this run is out of reach: what is measured is all of it.
    let text = format!(
        "[ring]\npath = {:?}\n[listen]\nsocket = {:?}\nhttp = {AGENT:?}\n\
         [budget]\ncpu_percent = 1000\nmemory = \"1GiB\"\n",
        folder.join("ring"),
        folder.join("agent.sock"),
    );
    fs::write(&config, text)?;
    let mut agent = Command::new(sexton);
    agent.args(["agent", "--config"]).arg(&config);
    let mut agent = Recorder::start("`sexton agent`, everything on", &mut agent, folder)?;
    agent.scrape(AGENT, SCRAPE_EVERY);
    let mut recorders = vec![agent];
    let mut atop = Command::new("atop");
    atop.arg("-w").arg(folder.join("atop")).arg("1");
    let mut exporter = Command::new("prometheus-node-exporter");
    exporter.arg(format!("--web.listen-address={NODE_EXPORTER}"));
    for (name, mut command) in [
        ("`atop -w` at 1 s", atop),
        ("`prometheus-node-exporter`, scraped each 15 s", exporter),
    ] {
        match Recorder::start(name, &mut command, folder) {
            Ok(recorder) => recorders.push(recorder),
            Err(error) => eprintln!("{name} is not measured: {error:#}"),
        }
    }
    for recorder in &mut recorders {
        if recorder.name.contains("exporter") {
            recorder.scrape(NODE_EXPORTER, SCRAPE_EVERY);
        }
    }
    Ok(recorders)
}

/// Time of all runs of our programs so far.
fn bpf_time(counting: &Counting) -> Duration {
    let costs = PROGRAMS.iter().flat_map(|prefix| counting.costs(prefix));
    costs.map(|(_, cost)| cost.time).sum()
}

/// CPU time of each thread so far; threads of one name together.
fn threads(recorder: &Recorder) -> Result<BTreeMap<String, Duration>> {
    let mut threads: BTreeMap<String, Duration> = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{}/task", recorder.pid()))? {
        let folder = entry?.path();
        let read = |name: &str| fs::read_to_string(folder.join(name));
        // One that has ended meanwhile is in the whole, and nowhere else.
        let (Ok(name), Ok(told)) = (read("comm"), read("schedstat")) else {
            continue;
        };
        let ns = told.split_whitespace().next().unwrap_or_default().parse()?;
        *threads.entry(name.trim().to_owned()).or_default() += Duration::from_nanos(ns);
    }
    Ok(threads)
}

fn told(rounds: &[(bool, Round)], window: Duration) -> String {
    let mut text = format!(
        "All at the same time for {} s, {} s after their start. The census that the agent takes \
         every five minutes is not in it.\n\n",
        window.as_secs(),
        WARM_UP.as_secs()
    );
    text.push_str("| what | dying cgroups | CPU % of a core | of it BPF | MiB |\n");
    text.push_str("| --- | ---: | ---: | ---: | ---: |\n");
    for (with_dying, round) in rounds {
        let dying = if *with_dying { "10,000" } else { "0" };
        for (name, cost) in &round.costs {
            let whole = cost.cpu_percent + cost.bpf_percent;
            let bpf = match name.starts_with("`sexton") {
                true => format!("{:.2}", cost.bpf_percent),
                false => "not counted".to_owned(),
            };
            let _ = writeln!(
                text,
                "| {name} | {dying} | {whole:.2} | {bpf} | {:.1} |",
                cost.rss_mib
            );
        }
    }
    let _ = writeln!(
        text,
        "\nGoal: {CPU_LIMIT_PERCENT} % of a core and {RSS_LIMIT_MIB} MiB on a quiet node.\n"
    );
    for (with_dying, round) in rounds {
        let dying = if *with_dying {
            "with 10,000 dying"
        } else {
            "quiet"
        };
        let threads = round.threads.iter().filter(|(_, percent)| *percent >= 0.01);
        let threads: Vec<String> = threads
            .map(|(name, percent)| format!("{name} {percent:.2}"))
            .collect();
        let _ = writeln!(
            text,
            "Threads of the agent, {dying}, %: {}.",
            threads.join(", ")
        );
    }
    text
}
