//! Other explanations that come to mind, ruled out aloud: one file each, and one line here.

mod disk_stall;
mod drained_burst;
mod link_flap;
mod lockup;
mod oom_kill;
mod steal;
mod throttling;
mod user_load;

use sexton_model::diagnosis::{Explanation, Outcome};
use sexton_model::finding::{Evidence, Finding};

use crate::case::Case;

/// Weighs one explanation; `None` when there is nothing that it could explain.
type Weigh = fn(&Case<'_>, &[Finding]) -> Option<Explanation>;

/// All other explanations.
static EXPLANATIONS: &[Weigh] = &[
    throttling::weigh,
    steal::weigh,
    user_load::weigh,
    link_flap::weigh,
    oom_kill::weigh,
    disk_stall::weigh,
    lockup::weigh,
    drained_burst::weigh,
];

/// Weighs every other explanation.
pub(crate) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Vec<Explanation> {
    EXPLANATIONS
        .iter()
        .filter_map(|explanation| explanation(case, findings))
        .collect()
}

/// Whether there is a finding of any of these codes.
fn any_of(findings: &[Finding], codes: &[&str]) -> bool {
    findings.iter().any(|finding| codes.contains(&finding.code))
}

/// It is not that.
fn ruled_out(name: &'static str, evidence: Evidence) -> Option<Explanation> {
    told(name, Outcome::RuledOut, evidence)
}

/// It plays a part.
fn plays_a_part(name: &'static str, evidence: Evidence) -> Option<Explanation> {
    told(name, Outcome::PlaysAPart, evidence)
}

/// It plays a part from this share of the time on.
fn by_share(
    name: &'static str,
    source: &'static str,
    (ratio, much): (f64, f64),
    text: String,
) -> Option<Explanation> {
    match ratio >= much {
        true => plays_a_part(name, Evidence::speaks_for(source, text).value(ratio)),
        false => ruled_out(name, Evidence::against(source, text).value(ratio)),
    }
}

/// It cannot be told, because a sensor was not at work.
fn not_seen(case: &Case<'_>, name: &'static str, sensor: &'static str) -> Option<Explanation> {
    let evidence = Evidence::missing(sensor, case.why_silent(sensor));
    told(name, Outcome::NotSeen, evidence)
}

fn told(name: &'static str, outcome: Outcome, evidence: Evidence) -> Option<Explanation> {
    Some(Explanation {
        name,
        outcome,
        evidence: vec![evidence],
    })
}

#[cfg(test)]
mod tests;
