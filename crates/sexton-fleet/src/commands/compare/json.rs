//! The comparison as JSON: `sexton.compare/1`.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::Shown;
use super::text::{label, spared_line};
use crate::compare::{Candidate, Difference, Effect, Input};
use crate::jobs::{Rate, Rates};

pub(super) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, &value(shown))?;
    writeln!(out)?;
    Ok(())
}

pub(super) fn value(shown: &Shown<'_>) -> Value {
    let answer = shown.answer;
    let mut differences = Vec::new();
    for difference in &answer.differences {
        flatten(shown, difference, &mut differences);
    }
    let unexplained = answer.unexplained.iter();
    differences.extend(unexplained.map(|effect| measured(shown.input, effect, None)));
    json!({
        "schema": "sexton.compare/1",
        "bad": answer.n_bad,
        "good": answer.n_good,
        "bad_is": shown.bad,
        "good_is": shown.good,
        "hours": shown.hours,
        "reports": shown.lake.claimed.n_reports,
        "tests": answer.n_tests,
        "pairs": answer.n_pairs,
        "jobs": shown.jobs_by_class().map(rates),
        "too_few": answer.too_few.map(|few| json!({
            "best_q": few.best_q, "nodes_needed": few.nodes_needed,
        })),
        "differences": differences,
        "problems": shown.lake.problems.lines(),
    })
}

/// How jobs went: with something, and elsewhere.
pub(in crate::commands) fn rates(rates: Rates) -> Value {
    let rate = |rate: Rate| json!({ "succeeded": rate.succeeded, "failed": rate.failed, "share": rate.share() });
    json!({
        "with": rate(rates.with), "elsewhere": rate(rates.elsewhere), "unknown": rates.n_unknown, "p": rates.p,
    })
}

/// Differences that stand for themselves, each before what is folded under it.
fn flatten(shown: &Shown<'_>, difference: &Difference, into: &mut Vec<Value>) {
    let (input, what) = (shown.input, &difference.what);
    let name = label(input, what);
    let mut own = of(input, what, None);
    own["exceptions"] = difference
        .exceptions
        .iter()
        .map(|exception| {
            json!({
                "group": input.items[exception.group].label(),
                "nodes": exception.n_group,
                "has": input.items[exception.has].label(),
                "nodes_with": exception.n_has,
                "nodes_with_cause": exception.n_cause,
                "elsewhere_share": exception.elsewhere,
                "text": spared_line(input, what, exception),
            })
        })
        .collect();
    own["jobs"] = shown.jobs_by(what).map_or(Value::Null, rates);
    into.push(own);
    let folded = difference.folded.iter();
    into.extend(folded.map(|folded| of(input, folded, Some(&name))));
    let effects = difference.effects.iter();
    into.extend(effects.map(|effect| measured(input, effect, Some(&name))));
}

fn of(input: &Input<'_>, candidate: &Candidate, folded_under: Option<&str>) -> Value {
    let item = &input.items[candidate.parts[0]];
    let odds = candidate.odds();
    let counts = candidate.counts;
    let with = candidate
        .parts
        .get(1)
        .map(|item| input.items[*item].label());
    let same = candidate.same.iter().map(|item| input.items[*item].label());
    json!({
        "label": label(input, candidate),
        "fact": item.fact,
        "subject": item.subject,
        "value": item.value,
        "together_with": with,
        "role": if candidate.is_hit() { "hit" } else { "spared" },
        "bad_with": counts.bad_with,
        "bad_without": counts.bad_without,
        "good_with": counts.good_with,
        "good_without": counts.good_without,
        "bad_share": counts.bad_share(),
        "good_share": counts.good_share(),
        "effect": odds.ratio,
        "effect_low": odds.low,
        "effect_high": odds.high,
        "p": candidate.p,
        "q": candidate.q,
        "same_nodes": same.collect::<Vec<_>>(),
        "before": candidate.order.before,
        "after": candidate.order.after,
        "folded_under": folded_under,
    })
}

fn measured(input: &Input<'_>, effect: &Effect, folded_under: Option<&str>) -> Value {
    match effect {
        Effect::Finding(finding) => of(input, finding, folded_under),
        Effect::Number(shifted) => {
            let shift = &shifted.shift;
            let fact = &input.measures[shifted.measure].fact;
            json!({
                "label": fact,
                "fact": fact,
                "subject": "",
                "value": "",
                "role": "measured",
                "bad_median": shift.bad_median,
                "good_median": shift.good_median,
                "effect": shift.bad_median - shift.good_median,
                "effect_low": shift.low,
                "effect_high": shift.high,
                "superiority": shift.superiority,
                "p": shift.p,
                "q": shifted.q,
                "folded_under": folded_under,
            })
        }
    }
}
