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
    let mut strata = vec![input.considered()];
    while tops.len() < MAX_TOPS && !causes.is_empty() {
        let rest = |cause: &Candidate| rest_of(input, cause, &strata);
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
        strata = strata
            .iter()
            .flat_map(|stratum| [stratum.and(&top.has), stratum.without(&top.has)])
            .filter(|stratum| stratum.count() > 0)
            .collect();
        tops.push(top);
    }
    let mut differences: Vec<Difference> = tops.into_iter().map(difference_of).collect();
    causes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    for cause in causes {
        let left = |difference: &Difference| {
            let top = &difference.what.has;
            let strata = [input.considered().and(top), input.considered().without(top)];
            rest_of(input, &cause, &strata).0
        };
        let by_left = |a: &&mut Difference, b: &&mut Difference| left(a).total_cmp(&left(b));
        if let Some(parent) = differences.iter_mut().min_by(by_left) {
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

/// What a candidate still tells within strata of nodes, and the degrees of freedom of that.
fn rest_of(input: &Input<'_>, candidate: &Candidate, strata: &[Bits]) -> (f64, u32) {
    let mask = &*candidate.known;
    let mut rest = (0.0, 0);
    for stratum in strata {
        let counts = counts_of(&candidate.has, &mask.and(stratum), input);
        let is_split = counts.with() > 0
            && counts.with() < counts.all()
            && counts.bad() > 0
            && counts.good() > 0;
        if is_split {
            rest.0 += counts.likelihood_gain();
            rest.1 += 1;
        }
    }
    rest
}

fn goes_with(input: &Input<'_>, effect: &Effect, top: &Candidate) -> bool {
    match effect {
        Effect::Finding(finding) => {
            let all = input.considered().and(&finding.known);
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
            let all = input.considered();
            let there = of(all.and(&top.has));
            let elsewhere = of(all.without(&top.has));
            let shift = ranks::shift(&there, &elsewhere);
            shift.is_some_and(|shift| (shift.superiority - 0.5).abs() >= MIN_NUMBER_SUPERIORITY)
        }
    }
}
