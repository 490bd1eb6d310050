//! Memory cgroups: how many, and how many for each live one.

use sexton_model::gate::Live;

use super::Counting;
use crate::gate::Seen;
use crate::gate::count::Count;
use crate::gate::policy::{GatePolicy, Limit};
use crate::words::figures::{count as count_of, plural};

pub(super) static MEMORY_CGROUPS: Counting = Counting {
    limit: Limit {
        name: "memory_cgroups",
        default: 1_000.0,
        range: (1.0, 1e9),
        title: "memory cgroups, live and dying",
        code: "MCG003",
        why: "the gate that the founding incident's engineers put into their pipeline",
    },
    count: memory_cgroups,
};

pub(super) static PER_LIVE: Counting = Counting {
    limit: Limit {
        name: "memory_cgroups_per_live",
        default: 4.0,
        range: (1.0, 1e6),
        title: "memory cgroups for each live one",
        code: "MCG001",
        why: "a larger ratio to live ones is not normal use; the founding incident had 286. \
              Fewer than 250 in all are too few to tell",
    },
    count: per_live,
};

/// Fewer memory cgroups than this pass whatever their ratio: after a reboot or a deploy a
/// handful of live ones has as many dying beside it. A quarter of the limit on all.
const PER_LIVE_FLOOR: u64 = 250;

const NEXT: &str = "sudo sexton zombies";

fn first_gap(seen: &Seen<'_>) -> String {
    let gap = seen.memory.gaps.first();
    gap.map_or("it was not counted".into(), |gap| gap.text.clone())
}

fn memory_cgroups(seen: &Seen<'_>, _: &GatePolicy) -> Count {
    match seen.memory.total {
        Some(total) => {
            let why = format!("the kernel tracks {}", plural(total, "memory cgroup"));
            Count::of(total as f64, why).next(NEXT.to_owned())
        }
        None => Count::unknown(first_gap(seen)),
    }
}

/// How many live ones are enough to pass with so many in all. Of few, all are counted: that
/// costs milliseconds and gives a figure to show.
pub(in crate::gate) fn enough_live(total: u64, policy: &GatePolicy) -> u64 {
    match total < PER_LIVE_FLOOR {
        true => total,
        false => (total as f64 / policy.limit(&PER_LIVE.limit)).ceil() as u64,
    }
}

fn per_live(seen: &Seen<'_>, _: &GatePolicy) -> Count {
    let Some(total) = seen.memory.total else {
        return Count::unknown(first_gap(seen)).next(NEXT.to_owned());
    };
    let ratio = |live: u64| total as f64 / live.max(1) as f64;
    let count = match seen.memory.live {
        Some(live) if total < PER_LIVE_FLOOR => {
            let why = format!(
                "{} in all: too few to be judged by their ratio",
                count_of(total)
            );
            match live {
                Live::Exactly(live) => Count::enough(ratio(live), why),
                Live::AtLeast(live) => Count::enough(ratio(live), why).upper_bound(),
            }
        }
        Some(Live::Exactly(live)) => {
            let why = format!("{} for {}", count_of(total), plural(live, "live one"));
            Count::of(ratio(live), why)
        }
        // More live ones only make the ratio smaller.
        Some(Live::AtLeast(live)) => {
            let why = format!(
                "{} for at least {}",
                count_of(total),
                plural(live, "live one")
            );
            Count::at_most(ratio(live), why)
        }
        None => Count::unknown(first_gap(seen)),
    };
    count.next(NEXT.to_owned())
}
