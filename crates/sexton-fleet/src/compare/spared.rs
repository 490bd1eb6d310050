//! The odd one out: a group of nodes that was spared, and what it has all the same.
//!
//! A zone that has the image of the others and not the unit that comes with it elsewhere is
//! the best clue there is: something keeps the cause away from it.

use super::{Candidate, Difference, Input, Kind};
use crate::stats::bits::Bits;

/// Elsewhere the thing has to bring the cause along this often.
const MIN_ELSEWHERE: f64 = 0.8;
/// And in the group at most this often.
const MAX_IN_GROUP: f64 = 0.2;
/// The least share of the group that has the thing.
const MIN_IN_GROUP: f64 = 0.5;
/// The fewest nodes in a group.
const MIN_NODES: u64 = 5;

/// A group that has something and not what comes with it elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Exception {
    /// The group that was spared.
    pub group: usize,
    /// How many nodes it has.
    pub n_group: u64,
    /// What it has as others do.
    pub has: usize,
    /// How many nodes of the group have that.
    pub n_has: u64,
    /// How many of these have the cause.
    pub n_cause: u64,
    /// The part of nodes elsewhere with the thing that have the cause.
    pub elsewhere: f64,
}

/// Groups of places, labels and the like that were spared by a cause.
pub(super) fn exceptions(input: &Input<'_>, difference: &Difference) -> Vec<Exception> {
    let cause = &difference.what;
    if !cause.is_hit() {
        return Vec::new();
    }
    let folded = difference.folded.iter();
    let folded = folded.filter(|folded| folded.parts.len() == 1);
    let folded = folded.flat_map(|folded| folded.parts.iter().chain(&folded.same));
    let groups = folded.chain(&cause.same);
    let found = groups.filter_map(|group| exception(input, cause, *group));
    let mut found: Vec<Exception> = found.collect();
    found.sort_by_key(|exception| std::cmp::Reverse(exception.n_group));
    found.dedup_by_key(|exception| exception.group);
    found
}

fn exception(input: &Input<'_>, cause: &Candidate, group: usize) -> Option<Exception> {
    let item = &input.items[group];
    if !matches!(item.kind, Kind::Zone | Kind::Label | Kind::Attribute) {
        return None;
    }
    // Where it is not known whether a node has the cause, the cause did not spare it.
    let known = cause.known.and(&input.masks[item.mask]);
    let considered = input.considered().and(&known);
    let here = item.has.and(&considered);
    let elsewhere = considered.without(&here);
    let n_here = here.count();
    if n_here < MIN_NODES || share(&here, &cause.has) > MAX_IN_GROUP {
        return None;
    }
    let carries = |at: usize| -> Option<Exception> {
        let carrier = &input.items[at];
        if !matches!(carrier.kind, Kind::Image | Kind::UnitFile | Kind::Package) {
            return None;
        }
        let (carrier_here, carrier_there) = (carrier.has.and(&here), carrier.has.and(&elsewhere));
        let n_has = carrier_here.count();
        let n_known = here.count_and(&input.masks[carrier.mask]);
        let rate = share(&carrier_there, &cause.has);
        let is_odd = n_has >= MIN_NODES
            && n_has as f64 >= MIN_IN_GROUP * n_known as f64
            && carrier_there.count() >= MIN_NODES
            && rate >= MIN_ELSEWHERE
            && share(&carrier_here, &cause.has) <= MAX_IN_GROUP;
        is_odd.then(|| Exception {
            group,
            n_group: n_here,
            has: at,
            n_has,
            n_cause: carrier_here.count_and(&cause.has),
            elsewhere: rate,
        })
    };
    let found = (0..input.items.len()).filter_map(carries);
    found.min_by(|a, b| {
        let kind = |exception: &Exception| input.items[exception.has].kind;
        let by_share = b.n_has.cmp(&a.n_has);
        kind(a).cmp(&kind(b)).then(by_share)
    })
}

fn share(of: &Bits, having: &Bits) -> f64 {
    of.count_and(having) as f64 / of.count().max(1) as f64
}
