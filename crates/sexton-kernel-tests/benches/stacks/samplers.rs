//! What one sample of a stack costs the core it is taken on: by the BPF program, and by an event
//! of perf.
//!
//! A thread that comes before all others spins on the core and adds up the time that is taken
//! from it, without sampling, and with either. What is more with it is shared by the samples.

use std::time::Duration;

use anyhow::{Context, Result};
use sexton_bpf::prog::stacks::{Options, Watch};
use sexton_host::perf::{self, Ask, What};
use sexton_kernel_tests::interrupted::time_taken_on;

const CORE: u32 = 1;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(900);
/// As many as can be asked for, so that they stand out from all else.
const HZ: u32 = 999;

/// The table of both.
pub(crate) fn table() -> Result<String> {
    let (mut by_bpf, mut by_perf) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Next to each other: the machine may do something else a second later.
        let nothing = time_taken_on(CORE, ROUND)?;
        by_bpf.push(with_bpf()?.per_sample(nothing));
        by_perf.push(with_perf()?.per_sample(nothing));
    }
    let (bpf, perf) = (median(&mut by_bpf), median(&mut by_perf));
    Ok(format!(
        "| sampler, {HZ} samples a second | taken from the core, a sample | against BPF |\n\
         | --- | ---: | ---: |\n\
         | BPF program | {bpf:.2} us | 1 |\n\
         | perf event | {perf:.2} us | {:.2} |\n",
        perf / bpf
    ))
}

/// What a round took from the core, with how many samples.
struct Round {
    taken: Duration,
    n: u64,
}

impl Round {
    fn per_sample(&self, nothing: Duration) -> f64 {
        let more = self.taken.as_secs_f64() - nothing.as_secs_f64();
        more * 1e6 / self.n.max(1) as f64
    }
}

fn with_bpf() -> Result<Round> {
    let options = Options {
        n_cores: CORE + 1,
        hz: HZ,
        room: Duration::from_secs(3),
    };
    let mut watch = Watch::load(options).context("BPF is refused")?;
    watch.sample_core(CORE)?;
    let taken = time_taken_on(CORE, ROUND)?;
    watch.forget_core(CORE);
    let n = watch.tally().n_taken;
    Ok(Round { taken, n })
}

fn with_perf() -> Result<Round> {
    let period = Duration::from_secs(1) / HZ;
    let mut watch = perf::Watch::new(Ask::Stacks(period), 1 << 20);
    watch.watch_core(CORE)?;
    let taken = time_taken_on(CORE, ROUND)?;
    let mut n = watch.n_lost();
    watch.drain(|record| n += u64::from(matches!(record.what, What::Sample(_))));
    Ok(Round { taken, n })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
