//! All pairs: two things that only together make nodes bad.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::screen::order;
use super::{Candidate, Input, MIN_SUPPORT, Order};
use crate::stats::bits::Bits;
use crate::stats::fisher::{self, Counts};
use crate::stats::special::Factorials;

/// A pair has to gain so much over each of its parts before it is looked at closely.
const MIN_GAIN: f64 = 8.0;
/// All pairs together may be wrong this often.
const MAX_WRONG: f64 = 0.01;
/// Pairs that are kept, at most.
const MAX_PAIRS: usize = 50;
/// Groups that are paired, at most: those that tell most.
const MAX_GROUPS: usize = 2000;

/// How many pairs there are, and those that matter.
pub(super) fn pairs(
    input: &Input<'_>,
    groups: &[Candidate],
    n_tests: usize,
    factorials: &Factorials,
) -> (usize, Vec<Candidate>) {
    let causes = groups.iter().filter(|group| {
        let kind = input.items[group.parts[0]].kind;
        !kind.is_measured()
    });
    let mut causes: Vec<&Candidate> = causes.collect();
    causes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    causes.truncate(MAX_GROUPS);
    let n_pairs = causes.len() * causes.len().saturating_sub(1) / 2;
    let mut found = promising(input, &causes);
    found.retain(|(a, b, pair)| {
        let limit = MAX_WRONG / n_pairs.max(1) as f64;
        let matters = |within: &Candidate| among(pair, within, input, factorials) <= limit;
        matters(causes[*a]) && matters(causes[*b]) && pair.is_strong()
    });
    let mut found: Vec<Candidate> = found.into_iter().map(|(_, _, pair)| pair).collect();
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    found.truncate(MAX_PAIRS);
    for pair in &mut found {
        pair.p = fisher::p_value(pair.counts, factorials);
        // Bonferroni, over everything: pairs are many, and few are right.
        pair.q = (pair.p * (n_pairs + n_tests) as f64).min(1.0);
        pair.order = order(input, pair);
    }
    (n_pairs, found)
}

/// The chance of the other part mattering so much among the nodes that have one part.
fn among(pair: &Candidate, part: &Candidate, input: &Input<'_>, factorials: &Factorials) -> f64 {
    let with = part.has.and(&pair.known);
    let counts = Counts {
        bad_with: pair.counts.bad_with,
        good_with: pair.counts.good_with,
        bad_without: with.count_and(&input.bad) - pair.counts.bad_with,
        good_without: with.count_and(&input.good) - pair.counts.good_with,
    };
    fisher::p_value(counts, factorials)
}

/// Counts all pairs, on all cores, and keeps those that gain over both parts.
fn promising(input: &Input<'_>, causes: &[&Candidate]) -> Vec<(usize, usize, Candidate)> {
    let known = Known::of(input, causes);
    let n_threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(8);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let a = next.fetch_add(1, Ordering::Relaxed);
            if a >= causes.len() {
                return found;
            }
            for b in a + 1..causes.len() {
                let pair = pair_of(input, &known, causes[a], causes[b]);
                found.extend(pair.map(|pair| (a, b, pair)));
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        let found = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default());
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(a, b, _)| (*a, *b));
        found
    })
}

/// Of which nodes two things are known at once: for each two masks, which nodes, and how many
/// of them are bad and good.
struct Known(HashMap<(usize, usize), (Arc<Bits>, u64, u64)>);

impl Known {
    fn of(input: &Input<'_>, causes: &[&Candidate]) -> Self {
        let masks = causes.iter().map(|cause| mask_of(input, cause));
        let masks: BTreeSet<usize> = masks.collect();
        let mut known = HashMap::new();
        for a in &masks {
            for b in &masks {
                let both = input.masks[*a].and(&input.masks[*b]);
                let (bad, good) = (both.count_and(&input.bad), both.count_and(&input.good));
                known.insert((*a, *b), (Arc::new(both), bad, good));
            }
        }
        Self(known)
    }
}

fn mask_of(input: &Input<'_>, cause: &Candidate) -> usize {
    input.items[cause.parts[0]].mask
}

fn pair_of(input: &Input<'_>, known: &Known, a: &Candidate, b: &Candidate) -> Option<Candidate> {
    let masks = (mask_of(input, a), mask_of(input, b));
    let (known, bad, good) = known.0.get(&masks)?;
    let (bad_with, good_with) = a.has.count_and_each(&b.has, &input.bad, &input.good);
    let counts = Counts {
        bad_with,
        good_with,
        bad_without: bad - bad_with,
        good_without: good - good_with,
    };
    if counts.with() < MIN_SUPPORT || counts.bad_share() <= counts.good_share() {
        return None;
    }
    let gain = counts.likelihood_gain();
    if gain < a.gain.max(b.gain) + MIN_GAIN {
        return None;
    }
    let has: Bits = a.has.and(&b.has);
    Some(Candidate {
        parts: vec![a.parts[0], b.parts[0]],
        same: Vec::new(),
        has,
        known: known.clone(),
        counts,
        gain,
        p: 1.0,
        q: 1.0,
        order: Order::default(),
    })
}
