//! Measures all recorders at the same time: the node as it is, and with dying cgroups, in turns.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sexton_bpf::stats::Counting;
use sexton_host::{Host, machine};
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::recorders::Recorder;

use crate::peers;

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

/// Dying cgroups of the second half.
pub(crate) const N_DYING: u32 = 10_000;

/// What recorders do once, when they start, is told apart. Ours takes a census four times
/// in the first half minute.
pub(crate) const WARM_UP: Duration = Duration::from_secs(40);

/// How long making and freeing dying cgroups is let work off.
const SETTLE: Duration = Duration::from_secs(6);

/// Measured so often without and with dying cgroups, in turns; medians are told.
pub(crate) const N_ROUNDS: usize = 4;

/// Our next census after those of the warm-up. It takes as long as all else does in half a
/// minute, so a round that it falls into says nothing: all have to be over by then.
const NEXT_CENSUS: Duration = Duration::from_secs(325);

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
    /// The CPU time of its own threads with dying cgroups over that without.
    pub(crate) growth: Growth,
    /// The same of one run of its programs in the kernel. How often they run is up to the
    /// node's other tasks, so that the time of all runs says nothing of dying cgroups.
    pub(crate) run_growth: Growth,
}

/// A ratio that was taken once each round.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// What it cost.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Of one core.
    pub(crate) cpu_percent: f64,
    /// Of one core, in programs that it put into the kernel. Only ours are counted.
    pub(crate) bpf_percent: f64,
    pub(crate) bpf_runs_per_sec: f64,
    pub(crate) rss_mib: f64,
}

impl Cost {
    /// CPU time in all.
    pub(crate) fn whole_percent(self) -> f64 {
        self.cpu_percent + self.bpf_percent
    }

    fn bpf_percent_per_run(&self) -> f64 {
        self.bpf_percent / self.bpf_runs_per_sec
    }
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
    let began = Instant::now();
    let recorders = peers::start_all(folder)?;
    thread::sleep(WARM_UP);
    let start_up = recorders.iter().map(Recorder::cpu);
    let start_up = start_up.collect::<Result<Vec<_>>>()?;
    let (mut quiet, mut dying) = (Vec::new(), Vec::new());
    for round in 1..=N_ROUNDS {
        // Each comes first as often as the other: what drifts favours neither.
        for with_dying in [round % 2 == 0, round % 2 != 0] {
            let what = if with_dying { "dying" } else { "freed" };
            eprintln!("round {round}: {N_DYING} cgroups {what}, for {window:?}");
            let costs = costs_beside(with_dying, || costs(&recorders, &counting, window))?;
            let place = if with_dying { &mut dying } else { &mut quiet };
            place.push(costs);
        }
    }
    if began.elapsed() > NEXT_CENSUS {
        eprintln!("a later census is in these figures: take shorter --seconds");
    }
    let rows = recorders.iter().zip(start_up).enumerate();
    Ok(rows
        .map(|(nth, (recorder, start_up))| Row {
            name: recorder.name,
            start_up,
            quiet: median(&quiet, nth),
            dying: median(&dying, nth),
            growth: growth(&quiet, &dying, |costs| costs[nth].cpu_percent),
            run_growth: growth(&quiet, &dying, |costs| costs[nth].bpf_percent_per_run()),
        })
        .collect())
}

/// Measures beside dying cgroups, or after as many were made and freed. So both have seen the
/// same births and deaths, and differ in nothing but what the kernel still holds.
fn costs_beside(with_dying: bool, costs: impl FnOnce() -> Result<Vec<Cost>>) -> Result<Vec<Cost>> {
    let nursery = Nursery::new("overhead")?;
    // Files on a disk would be written back while we measure, which is work of the node.
    let leak = nursery.leak(LEAKER, "dead", N_DYING, Pin::Tmpfs)?;
    if with_dying {
        thread::sleep(SETTLE);
        return costs();
    }
    drop(leak);
    drop(nursery);
    thread::sleep(SETTLE);
    costs()
}

/// How something of one recorder grew in each round.
fn growth(quiet: &[Vec<Cost>], dying: &[Vec<Cost>], of: impl Fn(&[Cost]) -> f64) -> Growth {
    let rounds = quiet.iter().zip(dying);
    let ratios: Vec<f64> = rounds.map(|(quiet, dying)| of(dying) / of(quiet)).collect();
    Growth {
        least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        most: ratios.iter().copied().fold(0.0, f64::max),
        median: middle(ratios),
    }
}

/// What one recorder cost in the middle one of several rounds.
fn median(rounds: &[Vec<Cost>], nth: usize) -> Cost {
    let of =
        |value: fn(&Cost) -> f64| middle(rounds.iter().map(|costs| value(&costs[nth])).collect());
    Cost {
        cpu_percent: of(|cost| cost.cpu_percent),
        bpf_percent: of(|cost| cost.bpf_percent),
        bpf_runs_per_sec: of(|cost| cost.bpf_runs_per_sec),
        rss_mib: of(|cost| cost.rss_mib),
    }
}

/// Of an even number, half way between the two in the middle.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

/// What each costs from now on.
fn costs(recorders: &[Recorder], counting: &Counting, window: Duration) -> Result<Vec<Cost>> {
    let cpu = |recorder: &Recorder| recorder.cpu();
    let before = recorders.iter().map(cpu).collect::<Result<Vec<_>>>()?;
    let ((bpf_before, runs_before), began) = (bpf_time(counting), Instant::now());
    thread::sleep(window);
    let took = began.elapsed();
    let percent = |time: Duration| 100.0 * time.as_secs_f64() / took.as_secs_f64();
    let (bpf, runs) = bpf_time(counting);
    let (bpf, runs) = (bpf.saturating_sub(bpf_before), runs - runs_before);
    let cost = |(nth, (recorder, before)): (usize, (&Recorder, Duration))| {
        Ok(Cost {
            cpu_percent: percent(recorder.cpu()?.saturating_sub(before)),
            // Ours is the first.
            bpf_percent: if nth == 0 { percent(bpf) } else { 0.0 },
            bpf_runs_per_sec: runs as f64 / took.as_secs_f64(),
            rss_mib: recorder.rss_mib()?,
        })
    };
    recorders.iter().zip(before).enumerate().map(cost).collect()
}

/// Time and number of all runs of our programs so far.
fn bpf_time(counting: &Counting) -> (Duration, u64) {
    let costs = PROGRAMS.iter().flat_map(|prefix| counting.costs(prefix));
    costs.fold((Duration::ZERO, 0), |(time, n), (_, cost)| {
        (time + cost.time, n + cost.n_runs)
    })
}
