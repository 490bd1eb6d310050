//! When a pile that goes on like this passes which limit.

use sexton_model::diagnosis::{Forecast, Passing};
use sexton_model::fact::host::HOST_MEMORY_BYTES;
use sexton_model::fact::memcg as fact;
use sexton_model::subject::Subject;

use super::bytes_each;
use crate::case::Case;
use crate::evidence::origins::Origin;
use crate::evidence::trend::Trend;

const DAY: f64 = 86_400.0;
const GIB: f64 = 1_073_741_824.0;

/// A read that takes longer holds a core for so long that drivers reset their devices.
const READ_NS: f64 = 5e9;

/// A read at the root so many times slower than at a leaf depends on what is below it.
const SLOWER: f64 = 3.0;

/// What will happen. A trend has three points at least, so there is no forecast from fewer.
pub(super) fn of(case: &Case<'_>, origin: &Origin<'_>, trend: Trend) -> Forecast {
    let node = Subject::node();
    let dying = case.latest(&fact::MEMCG_DYING, &node).unwrap_or(0.0);
    let limit = |name: String, at: Option<f64>| Passing {
        limit: name,
        in_days: at.and_then(|at| days(at, dying, trend.per_second)),
        range_days: at.and_then(|at| {
            let soonest = days(at, dying, trend.per_second + 2.0 * trend.error)?;
            Some((soonest, days(at, dying, trend.least())?))
        }),
    };
    let each = bytes_each(case).filter(|each| *each > 0.0);
    let memory = case.latest(&HOST_MEMORY_BYTES, &node);
    let reads = case.events(&fact::MEMCG_READS).next_back();
    let mut passes = Vec::new();
    if let Some(reads) = reads {
        passes.push(limit(
            format!("one read of {} takes 5 s", reads.says.file),
            slow_at(reads.says),
        ));
    }
    if let Some(each) = each {
        passes.push(limit(
            "kernel memory of dying cgroups reaches 1 GiB".into(),
            Some(GIB / each),
        ));
        passes.extend(memory.map(|memory| {
            let name = "kernel memory of dying cgroups reaches 10 % of all memory".into();
            limit(name, Some(0.1 * memory / each))
        }));
    }
    Forecast {
        what: format!("dying memory cgroups of {}", origin.subject.name),
        per_day: trend.per_second * DAY,
        per_day_error: trend.error * DAY,
        n_points: trend.n_points as u64,
        passes,
    }
}

/// How many dying ones make a read take too long. `None` where reads do not depend on them.
fn slow_at(reads: &fact::MemcgReads) -> Option<f64> {
    let numbers = [reads.root_ns?, reads.leaf_ns?, reads.dying?];
    let [root, leaf, dying] = numbers.map(|number| number as f64);
    let each = (root - leaf) / dying.max(1.0);
    (root > SLOWER * leaf && dying >= 1_000.0 && each > 0.0).then(|| (READ_NS - leaf) / each)
}

/// Days until there are so many; 0 when there are. `None`: never, at this rate.
fn days(at: f64, dying: f64, per_second: f64) -> Option<f64> {
    let left = at - dying;
    match (left <= 0.0, per_second > 0.0) {
        (true, _) => Some(0.0),
        (false, true) => Some(left / per_second / DAY),
        (false, false) => None,
    }
}
