//! The best way: asks the kernel itself, through the BPF walk of its tree.

mod clock;
mod collect;
mod names;
mod quick;

use std::time::Duration;

use sexton_bpf::LoadError;
use sexton_bpf::prog::memcg::{Options, Tally, Walk};
use sexton_host::cgroup::{CgroupStat, Controller, MemoryHierarchy};
use sexton_host::{Host, machine, page_batches};
use sexton_model::census::{Census, Cost, Hierarchy, Method, State};
use sexton_model::gap::{Gap, Why};
use sexton_model::sight::Sight;

use super::{CensusOptions, DEADLINE, NAME, PAGES_PER_LIST, known_images, page_bytes};
use crate::bpf;
use collect::Collector;

/// Walks again when the count differs from the kernel's: cgroups come and go, and
/// the kernel counts one as gone a moment after its memory state is freed.
const TRIES: u32 = 3;

/// How long to wait for busy CPUs to put their waiting pages on the lists.
const DRAIN_DEADLINE: Duration = Duration::from_millis(250);

/// Takes a census by walking.
pub(super) fn take(
    host: &Host,
    memory: &MemoryHierarchy,
    options: CensusOptions,
) -> Result<Census, LoadError> {
    let mut walk = load(host, options.all_pages)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let undrained = page_batches::drain(DRAIN_DEADLINE);
        let before = KernelCount::read(host, memory);
        let mut collector = Collector::new(host);
        let tally = walk.walk(|batch| collector.take(batch))?;
        let after = KernelCount::read(host, memory);
        let mut census = Census::new(Method::BpfWalk, memory.hierarchy, page_bytes());
        collector.finish(&mut census, &tally);
        let differs = before
            .zip(after)
            .and_then(|counts| differs(&census, &tally, counts));
        if differs.is_some() && tries < TRIES {
            continue;
        }
        census
            .gaps
            .extend(differs.map(|text| Gap::new(NAME, Why::Vanished, text)));
        census.counts.kernel_total = after.and_then(|count| count.total);
        note_tally(&mut census.gaps, &tally);
        note_undrained(&mut census, &undrained);
        census.cost = cost(host, &tally);
        let images = known_images(host, &mut census.gaps);
        census.summarize(&images);
        return Ok(census);
    }
}

/// Pages that wait on a CPU are on no list: what only they pin shows no pin.
fn note_undrained(census: &mut Census, undrained: &[u32]) {
    let unexplained = census.tree.iter().filter(|(_, cgroup)| {
        cgroup.state == State::Dying && cgroup.pages.holding() == 0 && !cgroup.has_children
    });
    let n = unexplained.count();
    if n > 0 && !undrained.is_empty() {
        let text = format!(
            "{n} dying cgroups show no page; pages that still wait on CPU {undrained:?} may pin them, which is busy or \
             not ours to use"
        );
        census.gaps.push(Gap::new(NAME, Why::Overrun, text));
    }
}

fn load(host: &Host, all_pages: bool) -> Result<Walk, LoadError> {
    Walk::load(Options {
        pages_per_list: (!all_pages).then_some(PAGES_PER_LIST),
        n_nodes: machine::possible_nodes(host),
        deadline: DEADLINE,
    })
}

/// The kernel's own count, to check the walk against.
#[derive(Debug, Clone, Copy)]
struct KernelCount {
    /// All memory cgroups, or on v2 of kernels that do not say, all cgroups.
    total: Option<u64>,
    /// Whether `total` counts memory cgroups and nothing else.
    exact: bool,
    /// Dying cgroups of any controller, on v2.
    dying: Option<u64>,
}

impl KernelCount {
    fn read(host: &Host, memory: &MemoryHierarchy) -> Option<Self> {
        let row = Controller::memory(host).ok().flatten();
        if memory.hierarchy == Hierarchy::V1 {
            return Some(Self {
                total: Some(row?.n_cgroups),
                exact: true,
                dying: None,
            });
        }
        // In a cgroup namespace the files speak of a part of the node only.
        let whole = memory
            .mount
            .as_deref()
            .filter(|_| memory.narrowed_by.is_none());
        let stat = whole.and_then(|mount| CgroupStat::read(host, mount).ok());
        let per_controller = stat.and_then(|stat| Some(stat.n_memory? + stat.n_dying_memory?));
        Some(Self {
            total: per_controller.or(row.map(|row| row.n_cgroups)),
            exact: per_controller.is_some(),
            dying: stat
                .filter(|_| per_controller.is_none())
                .map(|stat| stat.n_dying),
        })
    }
}

/// How the walk disagrees with the kernel's counts around it, if it does.
fn differs(
    census: &Census,
    tally: &Tally,
    (before, after): (KernelCount, KernelCount),
) -> Option<String> {
    let outside = |seen: u64, a: u64, b: u64| seen < a.min(b) || seen > a.max(b);
    if let (true, Some(a), Some(b)) = (before.exact, before.total, after.total)
        && outside(tally.visited, a, b)
    {
        let seen = tally.visited;
        return Some(format!(
            "the walk saw {seen} memory cgroups, the kernel counted {a} before and {b} after"
        ));
    }
    if let (Some(a), Some(b)) = (before.dying, after.dying) {
        let gone = census
            .tree
            .iter()
            .filter(|(_, c)| c.state == State::Dying && !c.has_directory);
        let seen = gone.count() as u64;
        if outside(seen, a, b) {
            return Some(format!(
                "{seen} dying memory cgroups were seen, the kernel counted {a} dying cgroups before and {b} \
                 after; this kernel counts those of other controllers too"
            ));
        }
    }
    None
}

fn note_tally(gaps: &mut Vec<Gap>, tally: &Tally) {
    if tally.too_deep > 0 {
        let text = format!(
            "{} cgroups have children too deep to follow",
            tally.too_deep
        );
        gaps.push(Gap::new(NAME, Why::Lost(tally.too_deep), text));
    }
    if tally.read_errors > 0 {
        let text = format!("{} reads of kernel memory failed", tally.read_errors);
        gaps.push(Gap::new(NAME, Why::Lost(tally.read_errors), text));
    }
}

/// What the structures of one dying cgroup take, from the kernel's type sizes.
fn cost(host: &Host, tally: &Tally) -> Option<Cost> {
    let n_cpus = machine::possible_cpus(host).ok()?;
    let n_nodes = machine::possible_nodes(host);
    let (cpus, nodes) = (u64::from(n_cpus), u64::from(n_nodes));
    let sizes = &tally.sizes;
    let bytes_per_cgroup = u64::from(sizes.cgroup)
        + u64::from(sizes.memcg)
        + u64::from(sizes.per_node) * nodes
        + u64::from(sizes.per_cpu) * cpus
        + u64::from(sizes.per_node_cpu) * nodes * cpus;
    Some(Cost {
        bytes_per_cgroup,
        n_cpus,
        n_nodes,
    })
}

pub(super) fn examine(host: &Host) -> Sight {
    let method = Method::BpfWalk;
    let load = || load(host, false).map(drop);
    bpf::examine(host, method.name(), method.shows(), load)
}
