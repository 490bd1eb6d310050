//! Dying memory cgroups slow down who reads memory statistics: joined by proof only.
//!
//! The proof is measured on the node: what one read costs above the dying ones against a
//! leaf, how that grows with their number, and whether the reader's stack is inside a walk.
//! Before Linux 5.8 `memory.numa_stat` of cgroup v1 walks every dying descendant; from 5.10
//! on nothing that readers poll does. No version is compared here.

use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_LIVE, MEMCG_READS, MemcgReads};
use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::Subject;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::evidence::kernel_walks::{Does, Seen};
use crate::evidence::read_cost::{QUICK_TIMES, SLOW_SECONDS, SLOW_TIMES};
use crate::words::figures::{count, percent, time_ns};

pub(super) static LINK: LinkRule = LinkRule {
    cause: "MCG001",
    effect: "CPU002",
    meet,
};

/// A walk is that of the dying ones where these are this part of all that it goes over: without
/// them it would take a tenth of the time.
const NEARLY_ALL: f64 = 0.9;

fn meet(case: &Case<'_>, _: &Finding, effect: &Finding) -> Meeting {
    let Some(seen) = gravest(case, effect) else {
        return Meeting::Strangers;
    };
    let file = file_of(&seen);
    let reads = case.events(&MEMCG_READS);
    let reads: Vec<Read> = reads.filter_map(|event| read(event.says)).collect();
    let (of_file, of_others): (Vec<&Read>, Vec<&Read>) = reads
        .iter()
        .partition(|read| file.is_none_or(|file| read.file == file));
    let mut evidence = vec![of_stack(&seen)];
    let cost = of_file.last().map(|read| read.cost(case));
    evidence.extend(of_file.last().map(|read| read.evidence(case)));
    let growth = growth(&of_file);
    evidence.extend(growth.as_ref().map(Growth::evidence));
    if of_file.is_empty() {
        let file = file.unwrap_or("memory.stat");
        let text = format!("the cost of one read of {file}: not measured");
        evidence.push(Evidence::missing("memcg", text));
        evidence.extend(of_others.last().map(|read| read.evidence(case)));
    }
    let walks = seen.does == Does::Walk;
    let mostly_dying = dying_share(case).is_some_and(|share| share >= 0.5);
    let is_flat = growth.as_ref().is_some_and(Growth::is_flat);
    match (cost, walks) {
        (Some(Cost::Slow), _) if is_flat => Meeting::Apart(evidence),
        (Some(Cost::Slow), true) => Meeting::Joined(Confidence::CERTAIN, evidence),
        (Some(Cost::Slow), false) => {
            let grows = growth.is_some_and(|growth| growth.is_in_step());
            let sure = if grows {
                Confidence::CERTAIN
            } else {
                Confidence::LIKELY
            };
            Meeting::Joined(sure, evidence)
        }
        // The walk was seen and goes over the dying ones for the most part; only what it
        // costs was not measured. It is the cost of the dying ones where they are nearly all that
        // it goes over: where the reader has the root's file open, which is above all of them.
        (None, true) if mostly_dying => {
            evidence.extend(dying_share(case).map(of_share));
            let root = file.map(|file| format!("/{file}"));
            let from_root = root.is_some_and(|root| has_open(case, effect, &root));
            let nearly_all = dying_share(case).is_some_and(|share| share >= NEARLY_ALL);
            evidence.extend(file.filter(|_| from_root).map(of_root));
            let sure = match from_root && nearly_all {
                true => Confidence::CERTAIN,
                false => Confidence::LIKELY,
            };
            Meeting::Joined(sure, evidence)
        }
        _ => Meeting::Apart(evidence),
    }
}

/// The gravest thing that this reader was seen at.
fn gravest(case: &Case<'_>, effect: &Finding) -> Option<Seen> {
    let all = case.sightings().iter();
    let own = all.filter(|sighting| *sighting.comm == *effect.subject.name);
    own.map(|sighting| sighting.seen.clone()).max()
}

/// Whether this reader was seen with that file of the hierarchy open while it walked.
fn has_open(case: &Case<'_>, effect: &Finding, path: &str) -> bool {
    let mut own = case.sightings().iter().filter(|sighting| {
        *sighting.comm == *effect.subject.name && sighting.seen.does == Does::Walk
    });
    own.any(|sighting| sighting.statistics.iter().any(|open| open == path))
}

/// The file whose read such a stack belongs to; `None` when it may be any, as in reclaim.
fn file_of(seen: &Seen) -> Option<&'static str> {
    let by_function = file_read_by(&seen.function);
    by_function.or_else(|| file_read_by(seen.caller.as_deref()?))
}

fn file_read_by(function: &str) -> Option<&'static str> {
    match function {
        "memcg_numa_stat_show"
        | "memory_numa_stat_show"
        | "mem_cgroup_nr_lru_pages"
        | "mem_cgroup_node_nr_lru_pages"
        | "cpumask_next" => Some("memory.numa_stat"),
        "memcg_stat_show" | "memory_stat_show" | "memory_stat_format" | "memcg_stat_format"
        | "memcg1_stat_format" => Some("memory.stat"),
        _ => None,
    }
}

fn of_stack(seen: &Seen) -> Evidence {
    match seen.does {
        Does::Walk => Evidence::speaks_for(
            "stacks",
            format!(
                "the reader was sampled in {}, which walks descendants",
                seen.function
            ),
        ),
        Does::Flush | Does::Read => Evidence::against(
            "stacks",
            format!(
                "the reader was sampled in {}, {}, and in no function that walks dying cgroups",
                seen.function,
                seen.does.words()
            ),
        ),
    }
}

/// What reads of a file cost at one moment.
#[derive(Debug)]
struct Read {
    file: String,
    dying: f64,
    place: String,
    above_ns: f64,
    leaf_ns: f64,
    first_ns: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    Slow,
    Quick,
    Between,
}

fn read(says: &MemcgReads) -> Option<Read> {
    let root = says
        .root_ns
        .map(|ns| (ns, "the root".to_owned(), says.dying));
    let ancestor = says.ancestor_ns.map(|ns| {
        let path = says.ancestor.as_deref().unwrap_or("an ancestor of them");
        (ns, path.to_owned(), says.ancestor_dying)
    });
    // Whichever is slower: an ancestor of the dying ones, or the root, which is one too.
    let both = [root, ancestor].into_iter().flatten();
    let (above_ns, place, dying) = both.max_by_key(|read| read.0)?;
    Some(Read {
        file: says.file.clone(),
        dying: dying.or(says.dying)? as f64,
        place,
        above_ns: above_ns as f64,
        leaf_ns: says.leaf_ns? as f64,
        first_ns: says.root_first_ns.map(|ns| ns as f64),
    })
}

impl Read {
    fn times(&self) -> f64 {
        self.above_ns / self.leaf_ns.max(1.0)
    }

    fn cost(&self, case: &Case<'_>) -> Cost {
        let is_short = self.above_ns < case.limit(&SLOW_SECONDS) * 1e9;
        match self.times() {
            times if times >= case.limit(&SLOW_TIMES) && !is_short => Cost::Slow,
            times if times <= case.limit(&QUICK_TIMES) || is_short => Cost::Quick,
            _ => Cost::Between,
        }
    }

    fn evidence(&self, case: &Case<'_>) -> Evidence {
        let text = format!(
            "one read of {} takes {} at {}, above {} dying ones, and {} at a leaf",
            self.file,
            time_ns(self.above_ns),
            self.place,
            count(self.dying as u64),
            time_ns(self.leaf_ns)
        );
        let first = self.first_ns.filter(|first| *first > 10.0 * self.above_ns);
        let text = match first {
            Some(first) => format!("{text}; the first one took {}", time_ns(first)),
            None => text,
        };
        let evidence = match self.cost(case) {
            Cost::Slow => Evidence::speaks_for("memcg: timed reads", text),
            Cost::Quick | Cost::Between => Evidence::against("memcg: timed reads", text),
        };
        evidence.value(self.above_ns / 1e9)
    }
}

/// How the time of a read went with the number of dying ones.
struct Growth {
    dying: (f64, f64),
    ns: (f64, f64),
}

/// `None` unless the number changed by half at least.
fn growth(reads: &[&Read]) -> Option<Growth> {
    let few = reads.iter().min_by(|a, b| a.dying.total_cmp(&b.dying))?;
    let many = reads.iter().max_by(|a, b| a.dying.total_cmp(&b.dying))?;
    (many.dying >= 1.5 * few.dying.max(1.0)).then_some(Growth {
        dying: (few.dying, many.dying),
        ns: (few.above_ns, many.above_ns),
    })
}

impl Growth {
    fn dying_times(&self) -> f64 {
        self.dying.1 / self.dying.0.max(1.0)
    }

    fn ns_times(&self) -> f64 {
        self.ns.1 / self.ns.0.max(1.0)
    }

    /// Of a first look at few or none most of the time is no walk, so that a read cannot grow
    /// as much as their number does: a growth to fifty times is enough.
    fn is_in_step(&self) -> bool {
        self.ns_times() >= self.dying_times().min(100.0) / 2.0
    }

    fn is_flat(&self) -> bool {
        self.ns_times() < 1.2
    }

    fn evidence(&self) -> Evidence {
        let text = format!(
            "from {} to {} dying cgroups, one read went from {} to {}",
            count(self.dying.0 as u64),
            count(self.dying.1 as u64),
            time_ns(self.ns.0),
            time_ns(self.ns.1)
        );
        match self.is_in_step() {
            true => Evidence::speaks_for("memcg: timed reads", text),
            false => Evidence::against("memcg: timed reads", text),
        }
    }
}

fn dying_share(case: &Case<'_>) -> Option<f64> {
    let node = Subject::node();
    let live = case.latest(&MEMCG_LIVE, &node)?;
    let dying = case.latest(&MEMCG_DYING, &node)?;
    Some(dying / (live + dying).max(1.0))
}

fn of_root(file: &str) -> Evidence {
    let text = format!("the reader had {file} of the root open, which is above all of them");
    Evidence::speaks_for("stacks: open files", text)
}

fn of_share(share: f64) -> Evidence {
    let text = format!("{} of the cgroups on such a walk are dying", percent(share));
    Evidence::speaks_for("memcg", text).value(share)
}

#[cfg(test)]
mod tests;
