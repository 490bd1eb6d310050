//! Counts and names the memory cgroups of a node, the dying ones included.
//!
//! Source, best first: a BPF walk of the kernel's own tree; `cgroup.stat` of cgroup
//! v2; the count in `/proc/cgroups` less the directories there are. Without BPF, owners of pages
//! (`/proc/kpagecgroup`) tell the parents.
//! Blind to: who removed a cgroup, and when.
//! Overhead: `docs/overhead.md#memcg`.

mod counts;
mod origins;
mod owners;
mod reads;
mod stat;
mod tally;
mod walk;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::{Host, HostError, clock, machine, runtimes};
use sexton_model::census::{Census, Hierarchy, Look, Method};
use sexton_model::fact::memcg as fact;
use sexton_model::fact::sexton::{SEXTON_STEP_DOWN, StepDown};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};

use crate::{Sensor, SensorSpec, bpf};

pub(crate) use reads::{numa_file, time_numa_stat};
pub use tally::tally;

pub(crate) const NAME: &str = "memcg";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "memory cgroups: live, dying, leaked; who made them, what pins them",
    emits: &[
        &fact::MEMCG_LIVE,
        &fact::MEMCG_DYING,
        &fact::MEMCG_LEAKED,
        &fact::MEMCG_DYING_BYTES,
        &fact::MEMCG_STAT_READ_NS,
        &fact::MEMCG_ORIGIN.fact,
        &fact::MEMCG_READS.fact,
        &SEXTON_STEP_DOWN.fact,
    ],
    every: FIRST_EVERY,
    deadline: DEADLINE,
    examine,
    open,
};

/// Pages looked at on each list of a dying cgroup, unless all are asked for.
///
/// Chosen: one page says which file pins a cgroup that a log or a lock file holds;
/// eight of each list find the several files of a real program.
const PAGES_PER_LIST: u32 = 8;

/// How often a census is taken at first, so that half a minute of watching has four: growth
/// cannot be told from fewer than three.
const FIRST_EVERY: Duration = Duration::from_secs(9);
const FIRST: u32 = 4;

/// How often one is taken in the long run: it costs some microseconds for each cgroup, and
/// what looks at all of them has no place in a steady tick.
const EVERY: Duration = Duration::from_secs(300);

/// The part of a core that censuses may take in the long run: one in so many.
///
/// Chosen: a census of a node without dying cgroups takes 85 ms, most of it to load the
/// program, so that `EVERY` is just this. One of more cgroups comes less often instead of
/// costing more: `cgroups` goes on counting those that come and go meanwhile.
const SHARE: u32 = 3_500;

/// The longest pause, whatever a census costs: growth must be told from something.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// The longest a census may take. Seventy thousand take a fifth of a second.
const DEADLINE: Duration = Duration::from_secs(20);

/// How to take a census.
#[derive(Debug, Clone, Copy, Default)]
pub struct CensusOptions {
    /// Look at every page of the dying ones, not at a sample.
    pub all_pages: bool,
    /// Where the walk is not possible, look for the owners of all pages of the node, which
    /// takes up to two seconds.
    pub owners: bool,
}

/// Takes a census by the best way that works here. `Err` is a gap that leaves
/// nothing to count.
pub fn census(host: &Host, options: CensusOptions) -> Result<Census, Gap> {
    let memory = find_memory(host)?;
    let mut looks = Vec::new();
    let mut gaps = Vec::new();
    match walk(host, &memory, options) {
        Ok(mut census) => {
            census.looks = other_looks(host, &memory, &census);
            return Ok(census);
        }
        Err(gap) => {
            looks.push(Look {
                method: Method::BpfWalk,
                dying: None,
                remark: format!("not possible: {}", gap.text),
            });
            gaps.push(gap);
        }
    }
    let mut census = match stat::take(host, &memory) {
        Ok(mut census) => {
            if options.owners {
                owners::add_pages(host, &memory, options, &mut census);
            }
            census
        }
        Err(remark) => {
            looks.push(Look {
                method: Method::CgroupStat,
                dying: None,
                remark,
            });
            let mut census = counts::take(host, &memory)?;
            if options.owners && census.counts.dying.is_some_and(|dying| dying > 0) {
                name_by_pages(host, &memory, options, &mut census, &mut looks);
            }
            census
        }
    };
    looks.push(Look {
        method: census.method,
        dying: census.counts.dying,
        remark: "used".into(),
    });
    gaps.append(&mut census.gaps);
    Ok(Census {
        looks,
        gaps,
        ..census
    })
}

/// Names the parents of those that were counted, if owners of pages can be seen.
fn name_by_pages(
    host: &Host,
    memory: &MemoryHierarchy,
    options: CensusOptions,
    census: &mut Census,
    looks: &mut Vec<Look>,
) {
    match owners::name(host, memory, options, census) {
        // It says that there are no names, which is no longer so.
        Ok(()) => census.gaps.retain(|gap| !counts::is_limit(gap)),
        Err(gap) => looks.push(Look {
            method: Method::PageOwnership,
            dying: None,
            remark: format!("not possible: {}", gap.text),
        }),
    }
}

fn walk(host: &Host, memory: &MemoryHierarchy, options: CensusOptions) -> Result<Census, Gap> {
    if !host.is_live() {
        return Err(bpf::not_running(NAME));
    }
    walk::take(host, memory, options)
        .map_err(|error| bpf::gap(NAME, host, &error, "sudo sexton zombies"))
}

fn find_memory(host: &Host) -> Result<MemoryHierarchy, Gap> {
    match MemoryHierarchy::find(host) {
        Ok(Some(memory)) => Ok(memory),
        Ok(None) => Err(Gap::new(
            NAME,
            Why::Unsupported,
            "the memory controller is off in this kernel",
        )
        .with_remedy("boot without cgroup_disable=memory")),
        Err(error) => Err(host_gap(&error)),
    }
}

/// What the ways that were not used would have said.
fn other_looks(host: &Host, memory: &MemoryHierarchy, census: &Census) -> Vec<Look> {
    let mut looks = vec![Look {
        method: Method::BpfWalk,
        dying: census.counts.dying,
        remark: "used".into(),
    }];
    looks.push(stat::look(host, memory));
    looks.push(counts::look(host, memory.hierarchy, census.counts.live));
    looks
}

/// Container id to image, from whatever runtime state there is.
fn known_images(host: &Host, gaps: &mut Vec<Gap>) -> HashMap<String, String> {
    let mut known = HashMap::new();
    for state in runtimes::states(host) {
        if let Some((first, more)) = state.unread.split_first() {
            let more = match more.len() {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            let text = format!(
                "images of some {} containers may be unknown: {}{more}",
                state.runtime,
                first.chain()
            );
            gaps.push(Gap::new(NAME, first.why(), text));
        }
        known.extend(state.images);
    }
    known
}

fn host_gap(error: &HostError) -> Gap {
    Gap::new(NAME, error.why(), error.chain())
}

fn examine(host: &Host) -> Vec<Sight> {
    let memory = match find_memory(host) {
        Ok(memory) => memory,
        Err(gap) => {
            let sight = Sight::blind("memory controller", gap.text);
            return vec![match gap.remedy {
                Some(remedy) => sight.with_remedy(remedy),
                None => sight,
            }];
        }
    };
    let hierarchy = match memory.hierarchy {
        Hierarchy::V1 => "cgroup v1",
        Hierarchy::V2 => "cgroup v2",
    };
    let place = match &memory.mount {
        Some(mount) => format!("{hierarchy}, mounted at {}", mount.display()),
        None => format!("{hierarchy}, not mounted here"),
    };
    vec![
        Sight::sees("memory controller", place),
        walk::examine(host),
        stat::examine(host, &memory),
        owners::examine(host, &memory),
        counts::examine(host, &memory),
        examine_runtimes(host),
    ]
}

fn examine_runtimes(host: &Host) -> Sight {
    const WHAT: &str = "images of containers";
    let states = runtimes::states(host);
    if states.is_empty() {
        return Sight::sees(WHAT, "no container runtime keeps state here");
    }
    let said: Vec<String> = states
        .iter()
        .map(|state| format!("{} knows {}", state.runtime, state.images.len()))
        .collect();
    let Some(error) = states.iter().find_map(|state| state.unread.first()) else {
        return Sight::sees(WHAT, said.join(", "));
    };
    let sight = Sight::blind(WHAT, error.chain());
    let sight = if states.iter().all(|state| state.images.is_empty()) {
        sight
    } else {
        sight.partly()
    };
    match error.why() {
        Why::Denied => sight.with_remedy("run as root: sudo sexton doctor"),
        _ => sight,
    }
}

/// The sensor: a census now and then, told as samples and events.
#[derive(Debug, Default)]
struct Memcg {
    n_taken: u32,
    /// Whether a census has named the dying ones, or their parents.
    has_names: bool,
    /// Gaps that were told and will stay.
    told: HashSet<String>,
    /// When the next census is due.
    next: Moment,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    find_memory(host)?;
    Ok(Box::new(Memcg::default()))
}

impl Sensor for Memcg {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        if out.now() < self.next {
            return;
        }
        let began = clock::thread_cpu_time();
        self.take(host, out);
        self.n_taken = self.n_taken.saturating_add(1);
        if self.n_taken >= FIRST {
            let cost = clock::thread_cpu_time().saturating_sub(began);
            self.next = out.now().after(pause_after(cost));
        }
    }
}

/// By which lesser means the dying ones are seen.
fn step_down(census: &Census) -> StepDown {
    let (what, by) = match census.method {
        Method::CgroupStat => ("parents of dying cgroups", "cgroup.stat"),
        Method::PageOwnership => ("parents of dying cgroups", "page ownership"),
        Method::BpfWalk | Method::ProcCgroups => ("dying cgroups", "the count in /proc/cgroups"),
    };
    StepDown {
        what: what.to_owned(),
        by: by.to_owned(),
    }
}

impl Memcg {
    fn take(&mut self, host: &Host, out: &mut Sink) {
        let node = Subject::node();
        let first_ns = reads::time_the_root(host, &node, out);
        let options = CensusOptions {
            // Once at the beginning, once when that is over, then as often as censuses are.
            owners: self.n_taken == 0 || self.n_taken + 1 >= FIRST,
            ..CensusOptions::default()
        };
        let census = match census(host, options) {
            Ok(census) => census,
            Err(gap) => return out.gap(&node, gap),
        };
        let values = [
            (&fact::MEMCG_LIVE, census.counts.live),
            (&fact::MEMCG_DYING, census.counts.dying),
            (&fact::MEMCG_LEAKED, census.counts.leaked),
            (&fact::MEMCG_DYING_BYTES, census.structure_bytes()),
        ];
        for (fact, value) in values {
            if let Some(value) = value {
                out.sample(&node, fact, value as f64);
            }
        }
        if self.n_taken == 0 && census.method != Method::BpfWalk {
            let about = Subject::new(SubjectKind::Sensor, NAME);
            out.event(out.now(), &about, &SEXTON_STEP_DOWN, step_down(&census));
        }
        let looks = origins::tell(&census, out);
        let above = looks.first().and_then(|look| look.above);
        reads::compare(host, &census, above, first_ns, out);
        self.has_names |= census.method == Method::PageOwnership;
        // That this count has no names matters only while no other has.
        let is_said = |gap: &Gap| self.has_names && counts::is_limit(gap);
        for gap in census.gaps.into_iter().filter(|gap| !is_said(gap)) {
            let stays = matches!(gap.why, Why::Unsupported | Why::Denied);
            if !stays || self.told.insert(gap.text.clone()) {
                out.gap(&node, gap);
            }
        }
    }
}

/// How long to wait after a census that took this much processor time.
fn pause_after(cost: Duration) -> Duration {
    cost.saturating_mul(SHARE).clamp(EVERY, LONGEST_PAUSE)
}

pub(crate) fn page_bytes() -> u64 {
    machine::page_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_census_that_costs_more_comes_less_often() {
        let check = |cost_ms: u64, seconds: u64| {
            let pause = pause_after(Duration::from_millis(cost_ms));
            assert_eq!(pause, Duration::from_secs(seconds), "{cost_ms} ms");
        };
        check(0, 300);
        check(85, 300);
        // Ten thousand dying cgroups, then seventy thousand.
        check(130, 455);
        check(400, 1400);
        check(20_000, 3600);
    }
}
