//! What grows: facts on nodes, and findings over the fleet.

use sexton_lake::LakeError;
use sexton_model::fact::{self, FactKind};

use crate::lake::{Hours, Lake, NO_NODE, NOT_SEEN};
use crate::parallel;
use crate::stats::adjust::q_values;
use crate::stats::trend::{MIN_NUMBERS, slope, trend};

/// A longer time is split into this number of parts.
const MAX_PARTS: usize = 24;

/// How many of the facts and nodes that are named may grow by chance alone.
const MAX_Q: f64 = 0.01;

/// What grows by less than this, from the first quarter of the time to the last, is not told.
const MIN_GROWTH: f64 = 1.1;

const US_PER_HOUR: f64 = 3.6e9;

/// A fact that grows, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Growing {
    /// Its name.
    pub fact: String,
    /// Nodes on which it grows, the fastest first.
    pub nodes: Vec<Grown>,
    /// Nodes that reported it for long enough to tell.
    pub n_known: usize,
}

/// A node on which a fact grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grown {
    /// The node.
    pub node: u32,
    /// By how much.
    pub per_hour: f64,
    /// What it was last.
    pub last: f64,
}

/// A finding that is on ever more nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Spreading {
    /// Its code.
    pub code: String,
    /// The part of nodes that had it last.
    pub share: f64,
    /// By how much that grows.
    pub share_per_hour: f64,
    /// When half of the nodes will have it, if it goes on like that.
    pub hours_to_half: Option<f64>,
}

/// A node on which a fact may grow.
struct Candidate {
    fact: usize,
    grown: Grown,
    p: f64,
}

/// Gauges that grow, those on most nodes first.
pub fn growing(lake: &Lake, hours: &Hours) -> Result<Vec<Growing>, LakeError> {
    let names = gauges(lake);
    let n_nodes = lake.claimed.names.len();
    let series = parallel::map(&names, |name| series_of(lake, hours, name, n_nodes));
    let mut candidates = Vec::new();
    let mut n_known = vec![0usize; names.len()];
    for (fact, series) in series.into_iter().enumerate() {
        let (of_fact, known) = series?;
        n_known[fact] = known;
        candidates.extend(
            of_fact
                .into_iter()
                .map(|(grown, p)| Candidate { fact, grown, p }),
        );
    }
    let p_values: Vec<f64> = candidates.iter().map(|candidate| candidate.p).collect();
    let q_values = q_values(&p_values, n_known.iter().sum());
    let mut found: Vec<Growing> = names
        .iter()
        .zip(n_known)
        .map(|(fact, n_known)| Growing {
            fact: (*fact).to_owned(),
            nodes: Vec::new(),
            n_known,
        })
        .collect();
    for (candidate, q) in candidates.into_iter().zip(q_values) {
        if q <= MAX_Q {
            found[candidate.fact].nodes.push(candidate.grown);
        }
    }
    found.retain(|growing| !growing.nodes.is_empty());
    for growing in &mut found {
        let fastest = |a: &Grown, b: &Grown| b.per_hour.total_cmp(&a.per_hour);
        growing
            .nodes
            .sort_by(|a, b| fastest(a, b).then(a.node.cmp(&b.node)));
    }
    found.sort_by_key(|growing| (std::cmp::Reverse(growing.nodes.len()), growing.fact.clone()));
    Ok(found)
}

/// The gauges of a lake. Of a counter reports have what it grew by, which is no level.
fn gauges(lake: &Lake) -> Vec<&'static str> {
    let is_there = |name: &str| {
        let mut groups = lake.claimed.groups.iter();
        groups.any(|group| group.file.number_columns().any(|known| known == name))
    };
    let gauges = fact::all().filter(|fact| fact.kind == FactKind::Gauge);
    gauges
        .map(|fact| fact.name)
        .filter(|name| is_there(name))
        .collect()
}

/// Nodes on which a fact grows by enough, each with how likely that is by chance; and how many
/// nodes could be told.
type Found = (Vec<(Grown, f64)>, usize);

fn series_of(lake: &Lake, hours: &Hours, name: &str, n_nodes: usize) -> Result<Found, LakeError> {
    let n_parts = hours.n_columns.min(MAX_PARTS);
    let mut sums = vec![0.0f64; n_nodes * n_parts];
    let mut counts = vec![0u32; n_nodes * n_parts];
    for group in &lake.claimed.groups {
        let numbers = group.file.numbers(group.group, name)?;
        for (row, number) in numbers.into_iter().enumerate() {
            let node = group.nodes[row];
            if node == NO_NODE || number.is_nan() || !group.is_report[row] {
                continue;
            }
            let Some(column) = hours.column_of(group.at_us[row]) else {
                continue;
            };
            let place = node as usize * n_parts + column * n_parts / hours.n_columns;
            sums[place] += number;
            counts[place] += 1;
        }
    }
    for (sum, count) in sums.iter_mut().zip(&counts) {
        *sum = if *count > 0 {
            *sum / f64::from(*count)
        } else {
            f64::NAN
        };
    }
    let hours_of_part =
        hours.n_columns as f64 / n_parts as f64 * hours.step_us as f64 / US_PER_HOUR;
    let mut found = Vec::new();
    let mut n_known = 0;
    for (node, values) in sums.chunks_exact(n_parts).enumerate() {
        let known = values.iter().filter(|value| !value.is_nan()).count();
        n_known += usize::from(known >= MIN_NUMBERS);
        if known < MIN_NUMBERS || !grew(values) {
            continue;
        }
        if let Some(trend) = trend(values).filter(|trend| trend.is_growth) {
            let last = values.iter().rev().copied().find(|value| !value.is_nan());
            let grown = Grown {
                node: node as u32,
                per_hour: slope(values) / hours_of_part,
                last: last.unwrap_or(f64::NAN),
            };
            found.push((grown, trend.p));
        }
    }
    Ok((found, n_known))
}

/// Whether numbers are larger in the last quarter than in the first.
fn grew(values: &[f64]) -> bool {
    let known: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    let quarter = (known.len() / 4).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, last) = (
        mean(&known[..quarter]),
        mean(&known[known.len() - quarter..]),
    );
    last > first.max(0.0) * MIN_GROWTH
}

/// Findings that are on ever more of the nodes that report, the fastest first.
pub fn spreading(hours: &Hours, n_nodes: usize) -> Vec<Spreading> {
    let mut seen = vec![0u32; hours.n_columns];
    for node in 0..n_nodes as u32 {
        for (column, cell) in hours.severity(node).iter().enumerate() {
            seen[column] += u32::from(*cell != NOT_SEEN);
        }
    }
    let hours_of_column = hours.step_us as f64 / US_PER_HOUR;
    let n_codes = hours.codes.len() as f64;
    let of_code = hours
        .open
        .chunk_by(|a, b| a.code == b.code)
        .filter_map(|open| {
            let mut having = vec![0u32; hours.n_columns];
            for open in open {
                having[open.column as usize] += 1;
            }
            let shares: Vec<f64> = having
                .iter()
                .zip(&seen)
                .map(|(having, seen)| f64::from(*having) / f64::from(*seen))
                .collect();
            let trend = trend(&shares).filter(|trend| trend.is_growth)?;
            let share_per_hour = slope(&shares) / hours_of_column;
            if trend.p * n_codes > MAX_Q || !grew(&shares) || share_per_hour <= 0.0 {
                return None;
            }
            let share = shares.iter().rev().copied().find(|share| !share.is_nan())?;
            let hours_to_half = (0.5 - share) / share_per_hour;
            Some(Spreading {
                code: hours.codes[open[0].code as usize].to_string(),
                share,
                share_per_hour,
                hours_to_half: (hours_to_half > 0.0).then_some(hours_to_half),
            })
        });
    let mut found: Vec<Spreading> = of_code.collect();
    found.sort_by(|a, b| b.share_per_hour.total_cmp(&a.share_per_hour));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wobble_is_no_growth() {
        assert!(!grew(&[
            100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0
        ]));
        assert!(grew(&[0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 2.0, 2.0]));
        assert!(!grew(&[0.0; 8]));
        assert!(grew(&[
            f64::NAN,
            10.0,
            11.0,
            12.0,
            13.0,
            14.0,
            15.0,
            16.0,
            17.0
        ]));
    }
}
