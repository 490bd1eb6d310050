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

/// How many pairs were compared, and those that matter.
pub(super) fn pairs(
    input: &Input<'_>,
    groups: &[Candidate],
    n_tests: usize,
    factorials: &Factorials,
) -> (usize, Vec<Candidate>) {
    pairs_of(input, groups, (n_tests, MAX_GROUPS), factorials)
}

fn pairs_of(
    input: &Input<'_>,
    groups: &[Candidate],
    (n_tests, max_groups): (usize, usize),
    factorials: &Factorials,
) -> (usize, Vec<Candidate>) {
    let causes = groups.iter().filter(|group| {
        let kind = input.items[group.parts[0]].kind;
        !kind.is_measured()
    });
    let mut causes: Vec<&Candidate> = causes.collect();
    causes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    // Those that tell most were chosen by what is tested: the pairs of all others count as tests, too.
    let n_all = n_pairs_of(causes.len());
    causes.truncate(max_groups);
    let n_pairs = n_pairs_of(causes.len());
    let mut found = promising(input, &causes);
    found.retain(|(a, b, pair)| {
        let limit = MAX_WRONG / n_all.max(1) as f64;
        let matters = |within: &Candidate| among(pair, within, input, factorials) <= limit;
        matters(causes[*a]) && matters(causes[*b]) && pair.is_strong()
    });
    let mut found: Vec<Candidate> = found.into_iter().map(|(_, _, pair)| pair).collect();
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    found.truncate(MAX_PAIRS);
    for pair in &mut found {
        pair.p = fisher::p_value(pair.counts, factorials);
        // Bonferroni, over everything: pairs are many, and few are right.
        pair.q = (pair.p * (n_all + n_tests) as f64).min(1.0);
        pair.order = order(input, pair);
    }
    (n_pairs, found)
}

fn n_pairs_of(n: usize) -> usize {
    n * n.saturating_sub(1) / 2
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

#[cfg(test)]
mod tests {
    use super::super::screen::screen;
    use super::super::{Item, Kind, Times};
    use super::*;

    struct NoTimes;

    impl Times for NoTimes {
        fn order(&self, _: usize) -> Order {
            Order::default()
        }
    }

    #[test]
    fn pairs_that_were_not_compared_count_as_tests() {
        // Bad is what has both of the first two of 40 things.
        const N: usize = 512;
        let has = |thing: usize, node: usize| match thing {
            0 => node.is_multiple_of(3),
            1 => node % 5 < 2,
            thing => ((node * 2_654_435_761 + thing * 40_503) % 65_536 / 7).is_multiple_of(2),
        };
        let is_bad = |node: usize| has(0, node) && has(1, node);
        let nodes = (0..N).filter(|node| is_bad(*node));
        let bad: Vec<usize> = nodes.collect();
        let start = bad.len().next_multiple_of(64);
        let good: Vec<usize> = (0..N).filter(|node| !is_bad(*node)).collect();
        let n_places = start + good.len();
        let of = |is: &dyn Fn(usize) -> bool| {
            let mut bits = Bits::none(n_places);
            let places = (0..).zip(&bad).chain((start..).zip(&good));
            for (place, _) in places.filter(|(_, node)| is(**node)) {
                bits.set(place);
            }
            bits
        };
        let items = (0..40).map(|thing| Item {
            kind: Kind::Label,
            fact: format!("label_{thing}"),
            subject: String::new(),
            value: "a".to_owned(),
            has: of(&|node| has(thing, node)),
            mask: 0,
        });
        let items: Vec<Item> = items.collect();
        let masks = [of(&|_| true)];
        let input = Input {
            bad: of(&is_bad),
            good: of(&|node| !is_bad(node)),
            items: &items,
            masks: &masks,
            measures: &[],
            times: &NoTimes,
        };
        let factorials = Factorials::up_to(N as u64);
        let groups = screen(&input, &factorials).groups;
        assert_eq!(groups.len(), 40);
        let (n_pairs, found) = pairs_of(&input, &groups, (40, 10), &factorials);
        assert_eq!(n_pairs, 45);
        assert_eq!(found[0].parts, [0, 1]);
        let expected = found[0].p * f64::from(40 * 39 / 2 + 40);
        assert!((found[0].q / expected - 1.0).abs() < 1e-9, "{}", found[0].q);
    }
}
