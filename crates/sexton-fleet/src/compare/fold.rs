//! What stands for itself, and what is folded under it.

use super::screen::{Significant, counts_of};
use super::{Candidate, Difference, Effect, Input, Shifted, spared};
use crate::parallel;
use crate::stats::bits::Bits;
use crate::stats::ranks;
use crate::stats::special::chi_squared_tail;

/// Differences that stand for themselves, at most.
const MAX_TOPS: usize = 4;
/// What is known of the trouble already explains something, unless chance would leave so much
/// less often than this.
const MAX_REST_P: f64 = 0.01;
/// And unless it tells at least this part of what the first difference tells.
const MIN_REST: f64 = 0.05;
/// A finding goes with a difference if it is so much more frequent there.
const MIN_FINDING_SHARE: f64 = 0.3;
/// A number goes with a difference if it is so often greater (or smaller) there.
const MIN_NUMBER_SUPERIORITY: f64 = 0.2;

pub(super) fn fold(
    input: &Input<'_>,
    significant: Significant,
    pairs: Vec<Candidate>,
) -> (Vec<Difference>, Vec<Effect>) {
    let is_effect = |candidate: &Candidate| {
        let kind = input.items[candidate.parts[0]].kind;
        kind.is_measured() || candidate.order.is_effect()
    };
    let all = significant.items.into_iter().chain(pairs);
    let (effects, causes): (Vec<_>, Vec<_>) = all.partition(is_effect);
    let mut differences = stand(input, causes);
    let mut unexplained = Vec::new();
    let numbers = significant.shifts.into_iter().map(Effect::Number);
    let effects: Vec<Effect> = effects
        .into_iter()
        .map(Effect::Finding)
        .chain(numbers)
        .collect();
    let parents = parallel::map(&effects, |effect| {
        let mut differences = differences.iter();
        differences.position(|difference| goes_with(input, effect, &difference.what))
    });
    for (effect, parent) in effects.into_iter().zip(parents) {
        match parent {
            Some(parent) => differences[parent].effects.push(effect),
            None => unexplained.push(effect),
        }
    }
    sort_effects(&mut unexplained);
    for difference in &mut differences {
        sort_effects(&mut difference.effects);
        difference.exceptions = spared::exceptions(input, difference);
    }
    (differences, unexplained)
}

fn sort_effects(effects: &mut [Effect]) {
    let strength = |effect: &Effect| match effect {
        Effect::Finding(candidate) => candidate.gain,
        Effect::Number(Shifted { shift, .. }) => shift.z * shift.z,
    };
    effects.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
}

/// Takes what tells most, then what tells most beyond that, and so on; folds the rest.
fn stand(input: &Input<'_>, mut causes: Vec<Candidate>) -> Vec<Difference> {
    let n_causes = causes.len() as f64;
    let mut tops: Vec<Candidate> = Vec::new();
    let mut strata = Strata::of(input);
    while tops.len() < MAX_TOPS && !causes.is_empty() {
        let rest = |cause: &Candidate| strata.rest_of(input, cause);
        let rests: Vec<(f64, u32)> = causes.iter().map(rest).collect();
        let best = (0..causes.len()).max_by(|a, b| {
            let by_name = name_order(input, &causes[*b]).cmp(&name_order(input, &causes[*a]));
            rests[*a].0.total_cmp(&rests[*b].0).then(by_name)
        });
        let Some(best) = best else { break };
        let (gain, degrees) = rests[best];
        let first = tops.first().map_or(0.0, |top| top.gain);
        let is_chance = chi_squared_tail(gain, f64::from(degrees)) * n_causes > MAX_REST_P;
        if !tops.is_empty() && (is_chance || gain < MIN_REST * first) {
            break;
        }
        let top = causes.remove(best);
        strata = strata.split_by(&top);
        tops.push(top);
    }
    let mut differences: Vec<Difference> = tops.into_iter().map(difference_of).collect();
    let of_each = differences.iter();
    let of_each = of_each.map(|difference| Strata::of(input).split_by(&difference.what));
    let of_each: Vec<Strata> = of_each.collect();
    causes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    for cause in causes {
        let left = |strata: &Strata| strata.rest_of(input, &cause).0;
        let parent = differences.iter_mut().zip(&of_each);
        if let Some((parent, _)) = parent.min_by(|(_, a), (_, b)| left(a).total_cmp(&left(b))) {
            parent.folded.push(cause);
        }
    }
    differences
}

fn difference_of(what: Candidate) -> Difference {
    Difference {
        what,
        folded: Vec::new(),
        effects: Vec::new(),
        exceptions: Vec::new(),
    }
}

/// Of those that tell the same: one before two, and in the order of kinds.
fn name_order(input: &Input<'_>, candidate: &Candidate) -> (usize, super::Kind, usize) {
    let first = candidate.parts[0];
    (candidate.parts.len(), input.items[first].kind, first)
}

/// Nodes, parted by what is known already.
struct Strata {
    /// Those that are alike in all of it.
    alike: Vec<Bits>,
    /// Those of which some of it is not known.
    unknown: Bits,
}

/// What chance alone makes a candidate tell in the nodes of which all is known.
const CHANCE: f64 = 2.0;

impl Strata {
    fn of(input: &Input<'_>) -> Self {
        let all = input.considered();
        Self {
            unknown: all.without(&all),
            alike: vec![all],
        }
    }

    fn split_by(&self, top: &Candidate) -> Self {
        let mut unknown = self.unknown.clone();
        let mut alike = Vec::new();
        for stratum in &self.alike {
            unknown = unknown.or(&stratum.without(&top.known));
            alike.push(stratum.and(&top.has));
            alike.push(stratum.and(&top.known).without(&top.has));
        }
        alike.retain(|stratum| stratum.count() > 0);
        Self { alike, unknown }
    }

    /// What a candidate still tells within these nodes, and the degrees of freedom of that.
    ///
    /// Where something is not known, that may still be what explains the candidate: it counts
    /// there by as much as is left of it where all is known.
    fn rest_of(&self, input: &Input<'_>, candidate: &Candidate) -> (f64, u32) {
        let (mut rest, mut degrees) = (0.0, 0);
        for stratum in &self.alike {
            if let Some(gain) = gain_within(input, candidate, stratum) {
                rest += gain;
                degrees += 1;
            }
        }
        if let Some(gain) = gain_within(input, candidate, &self.unknown) {
            let known = input.considered().without(&self.unknown);
            let whole = gain_within(input, candidate, &known).unwrap_or(0.0);
            rest += gain * ((rest + CHANCE) / (whole + CHANCE)).min(1.0);
            degrees += 1;
        }
        (rest, degrees)
    }
}

/// What a candidate tells within some nodes, if it can tell anything there.
fn gain_within(input: &Input<'_>, candidate: &Candidate, nodes: &Bits) -> Option<f64> {
    let counts = counts_of(&candidate.has, &candidate.known.and(nodes), input);
    let is_split =
        counts.with() > 0 && counts.with() < counts.all() && counts.bad() > 0 && counts.good() > 0;
    is_split.then(|| counts.likelihood_gain())
}

fn goes_with(input: &Input<'_>, effect: &Effect, top: &Candidate) -> bool {
    // A node of which it is not known whether it has it is neither there nor elsewhere.
    let considered = input.considered().and(&top.known);
    match effect {
        Effect::Finding(finding) => {
            let all = considered.and(&finding.known);
            let (there, elsewhere) = (all.and(&top.has), all.without(&top.has));
            let share =
                |nodes: &Bits| finding.has.count_and(nodes) as f64 / nodes.count().max(1) as f64;
            (share(&there) - share(&elsewhere)).abs() >= MIN_FINDING_SHARE
        }
        Effect::Number(shifted) => {
            let values = &input.measures[shifted.measure].values;
            let of = |nodes: Bits| -> Vec<f64> {
                let values = nodes.iter().map(|place| values[place]);
                values.filter(|value| !value.is_nan()).collect()
            };
            let there = of(considered.and(&top.has));
            let elsewhere = of(considered.without(&top.has));
            let shift = ranks::shift(&there, &elsewhere);
            shift.is_some_and(|shift| (shift.superiority - 0.5).abs() >= MIN_NUMBER_SUPERIORITY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, Item, Kind, Order, Times, compare};
    use super::*;

    impl Times for () {
        fn order(&self, _: usize) -> Order {
            Order::default()
        }
    }

    /// What is in question of a node.
    #[derive(Clone, Copy, Default)]
    struct Node {
        is_bad: bool,
        zone_a: bool,
        /// None if its units are not known.
        unit: Option<bool>,
        driver: bool,
        finding: bool,
        /// All but a few have it.
        image: bool,
    }

    /// Labels of differences, of what is folded under them, of their findings, and of groups that
    /// were spared.
    fn compared(nodes: &[Node]) -> Vec<[Vec<String>; 4]> {
        let n_bad = nodes.iter().filter(|node| node.is_bad).count();
        let start = n_bad.next_multiple_of(64);
        let n_places = start + nodes.len() - n_bad;
        let (bad, good): (Vec<Node>, Vec<Node>) = nodes.iter().partition(|node| node.is_bad);
        let placed = bad.iter().enumerate();
        let placed = placed.chain(good.iter().enumerate().map(|(at, node)| (start + at, node)));
        let placed: Vec<(usize, &Node)> = placed.collect();
        let of = |is: &dyn Fn(&Node) -> bool| {
            let mut bits = Bits::none(n_places);
            let held = placed.iter().filter(|(_, node)| is(node));
            held.for_each(|(place, _)| bits.set(*place));
            bits
        };
        let item = |kind, fact: &str, mask, has: Bits| Item {
            kind,
            fact: fact.to_owned(),
            subject: fact.to_owned(),
            value: "a".to_owned(),
            has,
            mask,
        };
        let items = [
            item(Kind::Unit, "unit", 1, of(&|node| node.unit == Some(true))),
            item(Kind::Zone, "zone", 0, of(&|node| node.zone_a)),
            item(Kind::Attribute, "driver", 0, of(&|node| node.driver)),
            item(Kind::Finding, "finding", 0, of(&|node| node.finding)),
            item(Kind::Image, "image", 0, of(&|node| node.image)),
        ];
        let masks = [of(&|_| true), of(&|node| node.unit.is_some())];
        let input = Input {
            bad: of(&|node| node.is_bad),
            good: of(&|node| !node.is_bad),
            items: &items,
            masks: &masks,
            measures: &[],
            times: &(),
        };
        let name = |at: usize| input.items[at].fact.clone();
        let Comparison { differences, .. } = compare(&input);
        let shown = differences.iter().map(|difference| {
            let names = |of: &[Candidate]| of.iter().map(|it| name(it.parts[0])).collect();
            let findings = difference.effects.iter().filter_map(|effect| match effect {
                Effect::Finding(finding) => Some(name(finding.parts[0])),
                Effect::Number(_) => None,
            });
            let spared = difference.exceptions.iter();
            [
                names(std::slice::from_ref(&difference.what)),
                names(&difference.folded),
                findings.collect(),
                spared.map(|exception| name(exception.group)).collect(),
            ]
        });
        shown.collect()
    }

    fn listed(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// A unit makes nodes bad, and is frequent in zone A; of every second node it is not known.
    fn half_known() -> Vec<Node> {
        let node = |n: usize| {
            let zone_a = (n / 2).is_multiple_of(2);
            let unit = n / 4 % 10 < if zone_a { 8 } else { 1 };
            Node {
                is_bad: unit,
                zone_a,
                unit: n.is_multiple_of(2).then_some(unit),
                finding: unit && n / 40 % 5 < 2,
                ..Node::default()
            }
        };
        (0..400).map(node).collect()
    }

    #[test]
    fn nodes_without_a_set_of_units_leave_a_cause_alone() {
        let found = compared(&half_known());
        let expected = [listed(&["unit"]), listed(&["zone"]), listed(&["finding"])];
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0][..3], expected);
    }

    #[test]
    fn a_cause_among_nodes_of_which_the_first_is_unknown_stands() {
        let node = |n: usize| {
            let (unit, driver) = (n / 2 % 20 < 9, n / 2 % 5 < 2);
            match n % 2 {
                0 => Node {
                    is_bad: unit,
                    unit: Some(unit),
                    driver: (n / 40).is_multiple_of(5),
                    ..Node::default()
                },
                _ => Node {
                    is_bad: driver,
                    driver,
                    ..Node::default()
                },
            }
        };
        let nodes: Vec<Node> = (0..400).map(node).collect();
        let found = compared(&nodes);
        let tops: Vec<&Vec<String>> = found.iter().map(|[what, ..]| what).collect();
        assert_eq!(tops, [&listed(&["unit"]), &listed(&["driver"])]);
    }

    #[test]
    fn a_group_is_not_spared_by_what_is_not_known_of_it() {
        // Zone A has the image and is well, and nothing is known of its units.
        let check = |unit_in_zone: Option<bool>, expected: &[&str]| {
            let node = |n: usize| match n % 4 {
                0 => Node {
                    zone_a: true,
                    image: true,
                    unit: unit_in_zone,
                    ..Node::default()
                },
                1 | 2 => Node {
                    is_bad: true,
                    image: true,
                    unit: Some(true),
                    ..Node::default()
                },
                _ => Node {
                    unit: Some(false),
                    ..Node::default()
                },
            };
            let nodes: Vec<Node> = (0..400).map(node).collect();
            let found = compared(&nodes);
            assert_eq!(found[0][0], listed(&["unit"]), "{found:?}");
            assert_eq!(found[0][3], listed(expected), "{found:?}");
        };
        check(Some(false), &["zone"]);
        check(None, &[]);
    }
}
