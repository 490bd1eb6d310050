//! Tests everything alone, and bounds false discoveries.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Candidate, Input, MAX_Q, MIN_SUPERIORITY, MIN_SUPPORT, Measure, Order, Shifted};
use crate::parallel;
use crate::stats::adjust::q_values;
use crate::stats::bits::Bits;
use crate::stats::fisher::{self, Counts};
use crate::stats::ranks;
use crate::stats::special::Factorials;

/// What was tested.
pub(super) struct Screened {
    /// Items, those on the same nodes together.
    pub(super) groups: Vec<Candidate>,
    shifts: Vec<Shifted>,
}

/// What differs, of all that was tested alone.
pub(super) struct Significant {
    pub(super) items: Vec<Candidate>,
    pub(super) shifts: Vec<Shifted>,
}

impl Screened {
    pub(super) fn n_tests(&self) -> usize {
        self.groups.len() + self.shifts.len()
    }

    pub(super) fn take_significant(&mut self, input: &Input<'_>) -> Significant {
        let items = std::mem::take(&mut self.groups).into_iter();
        let items = items.filter(|group| group.q <= MAX_Q && group.is_strong());
        let items = items.map(|mut group| {
            group.order = order(input, &group);
            group
        });
        let shifts = std::mem::take(&mut self.shifts).into_iter();
        let is_strong = |shifted: &Shifted| {
            shifted.q <= MAX_Q && (shifted.shift.superiority - 0.5).abs() >= MIN_SUPERIORITY
        };
        Significant {
            items: items.collect(),
            shifts: shifts.filter(is_strong).collect(),
        }
    }
}

/// When the parts appeared; of a pair, the later one.
pub(super) fn order(input: &Input<'_>, candidate: &Candidate) -> Order {
    let orders = candidate.parts.iter().map(|item| input.times.order(*item));
    orders.max_by_key(|order| order.after).unwrap_or_default()
}

pub(super) fn counts_of(has: &Bits, mask: &Bits, input: &Input<'_>) -> Counts {
    let (bad_with, good_with) = has.count_and_each(mask, &input.bad, &input.good);
    let (bad, good) = (mask.count_and(&input.bad), mask.count_and(&input.good));
    Counts {
        bad_with,
        bad_without: bad - bad_with,
        good_with,
        good_without: good - good_with,
    }
}

pub(super) fn screen(input: &Input<'_>, factorials: &Factorials) -> Screened {
    let mut groups = grouped(input);
    for group in &mut groups {
        group.p = fisher::p_value(group.counts, factorials);
        group.gain = group.counts.likelihood_gain();
    }
    let measures: Vec<(usize, &Measure)> = input.measures.iter().enumerate().collect();
    let shifts = parallel::map(&measures, |measure| shift_of(*measure));
    let mut shifts: Vec<Shifted> = shifts.into_iter().flatten().collect();
    let p_values = groups.iter().map(|group| group.p);
    let p_values = p_values.chain(shifts.iter().map(|shifted| shifted.shift.p));
    let q = q_values(&p_values.collect::<Vec<f64>>(), 0);
    let (of_groups, of_shifts) = q.split_at(groups.len());
    for (group, q) in groups.iter_mut().zip(of_groups) {
        group.q = *q;
    }
    for (shifted, q) in shifts.iter_mut().zip(of_shifts) {
        shifted.q = *q;
    }
    Screened { groups, shifts }
}

fn shift_of((measure, numbers): (usize, &Measure)) -> Option<Shifted> {
    let enough = |side: &[f64]| side.len() as u64 >= MIN_SUPPORT;
    if !enough(&numbers.bad) || !enough(&numbers.good) {
        return None;
    }
    let shift = ranks::shift(&numbers.bad, &numbers.good)?;
    // A number that is the same everywhere was not tested.
    (shift.z != 0.0 || shift.bad_median != shift.good_median).then_some(Shifted {
        measure,
        shift,
        q: 1.0,
    })
}

/// Items with enough support. Those on exactly the same nodes, or exactly on the others, are
/// one candidate: no comparison of these nodes can part them.
fn grouped(input: &Input<'_>) -> Vec<Candidate> {
    let considered = input.considered();
    let masks = input.masks.iter();
    let masks: Vec<Arc<Bits>> = masks.map(|mask| Arc::new(mask.and(&considered))).collect();
    let mut by_nodes: HashMap<(usize, Bits), usize> = HashMap::new();
    let mut groups: Vec<Candidate> = Vec::new();
    for (at, item) in input.items.iter().enumerate() {
        let counts = counts_of(&item.has, &masks[item.mask], input);
        let without = counts.all() - counts.with();
        if counts.with() < MIN_SUPPORT || without < MIN_SUPPORT {
            continue;
        }
        let has = item.has.and(&masks[item.mask]);
        let others = masks[item.mask].without(&has);
        // Of the two sides, the one that holds the first known node is the key.
        let first = masks[item.mask].iter().next().unwrap_or(0);
        let key = if has.has(first) { has.clone() } else { others };
        match by_nodes.get(&(item.mask, key.clone())) {
            Some(group) => groups[*group].same.push(at),
            None => {
                by_nodes.insert((item.mask, key), groups.len());
                groups.push(Candidate {
                    parts: vec![at],
                    same: Vec::new(),
                    has,
                    known: masks[item.mask].clone(),
                    counts,
                    gain: 0.0,
                    p: 1.0,
                    q: 1.0,
                    order: Order::default(),
                });
            }
        }
    }
    for group in &mut groups {
        name(input, &masks, group);
    }
    groups
}

/// Names a group by its first item in the order of kinds, and of one kind by the one that
/// bad nodes have.
fn name(input: &Input<'_>, masks: &[Arc<Bits>], group: &mut Candidate) {
    let items = group.parts.iter().chain(&group.same).copied();
    let mut items: Vec<usize> = items.collect();
    items.sort_by_key(|at| {
        let item = &input.items[*at];
        let counts = counts_of(&item.has, &masks[item.mask], input);
        let is_spared = counts.bad_share() < counts.good_share();
        (item.kind, is_spared, item.subject.clone(), *at)
    });
    let first = items.remove(0);
    let item = &input.items[first];
    group.has = item.has.and(&masks[item.mask]);
    group.counts = counts_of(&group.has, &masks[item.mask], input);
    group.parts = vec![first];
    group.same = items;
}
