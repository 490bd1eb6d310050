//! Units, as systemd tells of them: failed, and restarted.

use sexton_model::gate::UnitSurvey;

use super::{Counting, names};
use crate::evidence::restart_loops::LEAST_HISTORY;
use crate::gate::Seen;
use crate::gate::count::Count;
use crate::gate::policy::{GatePolicy, Limit};
use crate::words::figures::{plural, times};

pub(super) static FAILED_UNITS: Counting = Counting {
    limit: Limit {
        name: "failed_units",
        default: 0.0,
        range: (0.0, 1e6),
        title: "failed units",
        code: "UNIT003",
        why: "an image that boots with a failed unit carries something that does not belong there",
    },
    count: failed_units,
};

pub(super) static RESTARTS: Counting = Counting {
    limit: Limit {
        name: "restarts_per_hour",
        default: 3.0,
        range: (0.0, 1e6),
        title: "automatic restarts of one unit in an hour",
        code: "UNIT001",
        why: "Amazon's monitoring agent for EKS nodes warns of a service above 3 restarts \
              (monitors/runtime in aws/eks-node-monitoring-agent); in an hour, because it counts \
              for ever and a node may be up for a year. A service that waits for its next \
              restart after 10 or more (as in UNIT001) is in a loop whenever it began",
    },
    count: restarts_per_hour,
};

/// There is nothing that could fail.
const NO_SYSTEMD: &str = "systemd does not run this node";

fn failed_units(seen: &Seen<'_>, policy: &GatePolicy) -> Count {
    let units = match seen.units {
        Ok(units) => units,
        Err(gap) => return Count::unknown(&*gap.text),
    };
    let failed = units.failed.iter();
    let failed: Vec<String> = failed
        .filter(|unit| !policy.ignores_unit(unit))
        .cloned()
        .collect();
    let why = match failed.len() {
        0 if units.n_units == 0 => NO_SYSTEMD.to_owned(),
        0 => format!("none of {} has failed", plural(units.n_units, "unit")),
        _ => format!("failed: {}", names(&failed)),
    };
    let next = failed.first().map(|unit| status(unit));
    Count::of(failed.len() as f64, why).next(next).about(failed)
}

fn restarts_per_hour(seen: &Seen<'_>, policy: &GatePolicy) -> Count {
    let units = match seen.units {
        Ok(units) => units,
        Err(gap) => return Count::unknown(&*gap.text),
    };
    let mut restarted: Vec<&(String, u64)> = units
        .restarts
        .iter()
        .filter(|(unit, n)| *n > 0 && !policy.ignores_unit(unit))
        .collect();
    restarted.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    if let Some((unit, n)) = in_loop(units, &restarted) {
        let times = times(*n as usize);
        let why = format!(
            "systemd has restarted {unit} {times}, and it waits for its next restart now: since \
             when is not known"
        );
        let count = Count::of(*n as f64, why).upper_bound();
        return count.about(vec![unit.clone()]).next(status(unit));
    }
    let most = restarted.first().map_or(0, |(_, n)| *n);
    // A node that is up for minutes has no hour yet: what it did counts as one.
    let hours = units.uptime_seconds.max(3600) as f64 / 3600.0;
    let why = match restarted.first() {
        None if units.n_units == 0 => NO_SYSTEMD.to_owned(),
        None => "systemd has restarted no service".to_owned(),
        Some((unit, n)) => format!(
            "systemd has restarted {unit} {} in {hours:.0} h, or in less since it was started by \
             hand",
            times(*n as usize)
        ),
    };
    let subjects = restarted.iter().map(|(unit, _)| unit.clone()).collect();
    let next = restarted.first().map(|(unit, _)| status(unit));
    unless_unasked(units, most as f64 / hours, why)
        .about(subjects)
        .next(next)
}

/// The unit with most restarts of those that wait for their next one. The count is as old as the
/// node may be: over all of its uptime, a loop of the last hours is next to nothing.
fn in_loop<'a>(units: &UnitSurvey, restarted: &[&'a (String, u64)]) -> Option<&'a (String, u64)> {
    let is_in_loop = |one: &&&(String, u64)| {
        one.1 as f64 >= LEAST_HISTORY.default && units.waiting.contains(&one.0)
    };
    restarted.iter().find(is_in_loop).copied()
}

fn unless_unasked(units: &UnitSurvey, value: f64, why: String) -> Count {
    match units.n_unasked {
        0 => Count::of(value, why),
        n => Count::at_least(
            value,
            format!("{why}; {} could not be asked in time", plural(n, "service")),
        ),
    }
}

fn status(unit: &str) -> String {
    format!("systemctl status {unit}")
}
