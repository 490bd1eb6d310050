//! The order of things: few and live ones first, so that what a stage leaves
//! behind does not weigh on the next.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sexton_host::cgroup::{Controller, MemoryHierarchy};
use sexton_host::{Host, machine, page_batches};
use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};

use crate::bare;
use crate::commands::{sexton, usage};
use crate::figures::{AtSize, Commands, Cost, Figures, Spread, Usage, millis};
use crate::kernel_memory::KernelMemory;
use crate::walks;

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

const SIZES: [u32; 3] = [1_000, 10_000, 70_000];
const N_LIVE: u32 = 10_000;
const ROUNDS: u32 = 7;

/// How long to wait until the kernel has let go of what a stage made. Some may
/// stay: metadata pages of the filesystem are charged to whoever touched them.
const RELEASE_DEADLINE: Duration = Duration::from_secs(60);

pub(crate) fn measure() -> Result<Figures> {
    require(Need::Root);
    require(Need::Bpf);
    let host = Host::live()?;
    let before = count(&host)?;
    let machine = machine_text(&host)?;
    let load_ms = (
        repeated(|| time(|| walks::load(&host)))?,
        repeated(bare::time_to_load)?,
    );
    let drain_ms = repeated(|| time(|| Ok(page_batches::drain(Duration::from_secs(1)))))?;
    let commands = commands(&host)?;
    release(&host, before)?;
    let cost = cost(&host)?;
    release(&host, before)?;
    let (sizes, [text, json]) = sizes(&host)?;
    let after = release(&host, before)?;
    Ok(Figures {
        sizes,
        load_ms,
        drain_ms,
        commands,
        text,
        json,
        cost,
        machine,
        left: (before, after),
    })
}

/// `sexton zombies --json` and `find`, in turns, among live cgroups.
fn commands(host: &Host) -> Result<Commands> {
    say("live cgroups, next to find");
    let memory = MemoryHierarchy::find(host)?.context("no memory controller")?;
    let mount = memory.mount.context("it is not mounted")?;
    let mount = mount.to_str().context("an odd path")?;
    let nursery = Nursery::new("bench-live")?;
    for i in 0..N_LIVE {
        nursery.keep(format!("spare-{i}"))?;
    }
    let sexton = sexton()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(millis(usage(&sexton, &["zombies", "--json"])?.cpu));
        theirs.push(millis(
            usage(Path::new("find"), &[mount, "-type", "d"])?.cpu,
        ));
    }
    Ok(Commands {
        n_live: N_LIVE,
        sexton_ms: Spread::of(ours.into_iter()),
        find_ms: Spread::of(theirs.into_iter()),
    })
}

/// One log pins them all, so that no inodes of files are in the figure.
fn cost(host: &Host) -> Result<Cost> {
    say("kernel memory of dying cgroups");
    let n_dying = SIZES[SIZES.len() - 1];
    let nursery = Nursery::new("bench-cost")?;
    let before = KernelMemory::read()?;
    let _leak = nursery.leak(LEAKER, "z", n_dying, Pin::SharedLog)?;
    let after = KernelMemory::read()?;
    let census = walks::take(host)?;
    let estimate = census.cost.context("the census has no estimate")?;
    let each = |before: f64, after: f64| (after - before) / f64::from(n_dying);
    Ok(Cost {
        n_dying,
        slab: each(before.slab, after.slab),
        percpu: each(before.percpu, after.percpu),
        estimate: estimate.bytes_per_cgroup as f64,
    })
}

/// The walks at each size, and peak memory at the largest, as text and as JSON.
fn sizes(host: &Host) -> Result<(Vec<AtSize>, [Usage; 2])> {
    let nursery = Nursery::new("bench-walk")?;
    let mut sizes = Vec::new();
    let mut made = 0;
    for n_dying in SIZES {
        say(&format!("walks at {n_dying}"));
        nursery.leak(
            LEAKER,
            &format!("to-{n_dying}"),
            n_dying - made,
            Pin::OwnFile,
        )?;
        made = n_dying;
        sizes.push(walks::measure(host, &nursery.path, n_dying)?);
    }
    say("peak memory");
    let sexton = sexton()?;
    let text = usage(&sexton, &["zombies"])?;
    let json = usage(&sexton, &["zombies", "--json"])?;
    say("letting go");
    Ok((sizes, [text, json]))
}

/// All memory cgroups that the kernel counts.
fn count(host: &Host) -> Result<u64> {
    let memory = Controller::memory(host)?;
    Ok(memory.context("no memory controller")?.n_cgroups)
}

/// Waits until as few are left as there were, or no more go; says how many.
fn release(host: &Host, before: u64) -> Result<u64> {
    let deadline = Instant::now() + RELEASE_DEADLINE;
    let mut left = count(host)?;
    let mut same = 0;
    while left > before && same < 10 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(300));
        let now = count(host)?;
        same = if now == left { same + 1 } else { 0 };
        left = now;
    }
    say(&format!("{before} memory cgroups before, {left} now"));
    Ok(left)
}

fn machine_text(host: &Host) -> Result<String> {
    let cores = thread::available_parallelism()?;
    let kernel = machine::kernel_release(host)?;
    let nodes = machine::possible_nodes(host);
    Ok(format!(
        "{cores} cores, {nodes} NUMA node(s), Linux {kernel}"
    ))
}

fn time<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn repeated(work: impl Fn() -> Result<Duration>) -> Result<Spread> {
    let times: Result<Vec<Duration>> = (0..ROUNDS).map(|_| work()).collect();
    Ok(Spread::of(times?.into_iter().map(millis)))
}

fn say(what: &str) {
    eprintln!("census: {what}");
}
