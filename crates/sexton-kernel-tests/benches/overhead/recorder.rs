//! Measures all recorders at the same time: the node as it is, and with dying cgroups, in turns.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sexton_bpf::stats::Counting;
use sexton_host::{Host, machine};
use sexton_kernel_tests::nursery::{Nursery, Pin};

use crate::peers::{self, Recorder};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

/// Dying cgroups of the second half.
pub(crate) const N_DYING: u32 = 10_000;

/// What recorders do once, when they start, is told apart. Ours takes a census four times
/// in the first half minute.
pub(crate) const WARM_UP: Duration = Duration::from_secs(40);

/// How long making and freeing dying cgroups is let work off.
const SETTLE: Duration = Duration::from_secs(6);

/// Measured so often without and with dying cgroups, in turns; medians are told.
pub(crate) const N_ROUNDS: usize = 3;

/// How the names of our programs in the kernel begin.
const PROGRAMS: [&str; 5] = ["cgroups_", "exits_", "memcg_", "napi_", "runq_"];

/// What was measured.
pub(crate) struct Figures {
    pub(crate) machine: String,
    pub(crate) window: Duration,
    pub(crate) rows: Vec<Row>,
}

/// One recorder.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// CPU time of its first seconds.
    pub(crate) start_up: Duration,
    /// On the node as it is, and with dying cgroups.
    pub(crate) quiet: Cost,
    pub(crate) dying: Cost,
}

/// What it cost.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Of one core.
    pub(crate) cpu_percent: f64,
    /// Of one core, in programs that it put into the kernel. Only ours are counted.
    pub(crate) bpf_percent: f64,
    pub(crate) rss_mib: f64,
}

pub(crate) fn measure(window: Duration) -> Result<Figures> {
    let host = Host::live()?;
    let kernel = machine::kernel_release(&host)?;
    let machine = format!("{} cores, Linux {kernel}", thread::available_parallelism()?);
    let folder = std::env::temp_dir().join(format!("sexton-overhead-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = measure_in(&folder, window);
    std::fs::remove_dir_all(&folder).ok();
    Ok(Figures {
        machine,
        window,
        rows: measured?,
    })
}

fn measure_in(folder: &std::path::Path, window: Duration) -> Result<Vec<Row>> {
    let counting = Counting::start().context("the kernel does not count what BPF costs")?;
    let recorders = peers::start_all(folder)?;
    thread::sleep(WARM_UP);
    let start_up = recorders.iter().map(Recorder::cpu);
    let start_up = start_up.collect::<Result<Vec<_>>>()?;
    let (mut quiet, mut dying) = (Vec::new(), Vec::new());
    for round in 1..=N_ROUNDS {
        eprintln!("round {round}: measuring the node as it is, for {window:?}");
        quiet.push(costs(&recorders, &counting, window)?);
        let nursery = Nursery::new("overhead")?;
        let leak = nursery.leak(LEAKER, "dead", N_DYING, Pin::OwnFile)?;
        thread::sleep(SETTLE);
        eprintln!("round {round}: measuring with {N_DYING} dying cgroups, for {window:?}");
        dying.push(costs(&recorders, &counting, window)?);
        drop(leak);
        drop(nursery);
        thread::sleep(SETTLE);
    }
    let rows = recorders.iter().zip(start_up).enumerate();
    Ok(rows
        .map(|(nth, (recorder, start_up))| Row {
            name: recorder.name,
            start_up,
            quiet: median(&quiet, nth),
            dying: median(&dying, nth),
        })
        .collect())
}

/// What one recorder cost in the middle one of several rounds.
fn median(rounds: &[Vec<Cost>], nth: usize) -> Cost {
    let middle = |value: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(|costs| value(&costs[nth])).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Cost {
        cpu_percent: middle(|cost| cost.cpu_percent),
        bpf_percent: middle(|cost| cost.bpf_percent),
        rss_mib: middle(|cost| cost.rss_mib),
    }
}

/// What each costs from now on.
fn costs(recorders: &[Recorder], counting: &Counting, window: Duration) -> Result<Vec<Cost>> {
    let cpu = |recorder: &Recorder| recorder.cpu();
    let before = recorders.iter().map(cpu).collect::<Result<Vec<_>>>()?;
    let (bpf_before, began) = (bpf_time(counting), Instant::now());
    thread::sleep(window);
    let took = began.elapsed();
    let percent = |time: Duration| 100.0 * time.as_secs_f64() / took.as_secs_f64();
    let bpf = bpf_time(counting).saturating_sub(bpf_before);
    let cost = |(nth, (recorder, before)): (usize, (&Recorder, Duration))| {
        Ok(Cost {
            cpu_percent: percent(recorder.cpu()?.saturating_sub(before)),
            // Ours is the first.
            bpf_percent: if nth == 0 { percent(bpf) } else { 0.0 },
            rss_mib: recorder.rss_mib()?,
        })
    };
    recorders.iter().zip(before).enumerate().map(cost).collect()
}

fn bpf_time(counting: &Counting) -> Duration {
    let costs = PROGRAMS.iter().flat_map(|prefix| counting.costs(prefix));
    costs.map(|(_, cost)| cost.time).sum()
}
