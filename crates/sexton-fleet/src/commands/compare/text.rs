//! The comparison as text: the answer first, then what comes with it.

use std::io::{Result, Write};

use sexton_model::text::escape;

use super::Shown;
use crate::compare::{Candidate, Difference, Effect, Exception, Input, Order};
use crate::jobs::{Rate, Rates};
use crate::show::{self, chance, count, number, percent, wrapped};

/// Lines of each list.
const MAX_LINES: usize = 8;

pub(super) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> Result<()> {
    let answer = shown.answer;
    wrapped(
        out,
        "",
        &format!(
            "{} bad nodes ({}), {} good ones ({}), last {} h, {} reports.",
            count(answer.n_bad),
            shown.bad,
            count(answer.n_good),
            shown.good,
            shown.hours,
            count(shown.lake.claimed.n_reports as u64)
        ),
    )?;
    wrapped(
        out,
        "",
        &format!(
            "Compared {} things one by one and {} pairs of them.",
            count(answer.n_tests as u64),
            count(answer.n_pairs as u64)
        ),
    )?;
    if let Some(rates) = shown.jobs_by_class() {
        wrapped(out, "", &jobs_line("on bad nodes", "on good ones", rates))?;
    }
    writeln!(out)?;
    if let Some(too_few) = answer.too_few {
        wrapped(
            out,
            "",
            &format!(
                "NOT ENOUGH NODES: even something that all bad nodes have and no good one could be chance ({}). About {} nodes, half of them bad, would be enough.",
                chance("q", too_few.best_q),
                too_few.nodes_needed
            ),
        )?;
    } else if answer.is_empty() {
        wrapped(
            out,
            "",
            "NOTHING DIFFERS: no unit, package, image, label or fact tells bad from good nodes beyond chance.",
        )?;
    }
    for (at, difference) in answer.differences.iter().enumerate() {
        write_difference(shown, at + 1, difference, out)?;
    }
    if !answer.unexplained.is_empty() {
        writeln!(out, "Also differs, and goes with none of the above")?;
        effects(shown.input, &answer.unexplained, out)?;
        writeln!(out)?;
    }
    show::problems(out, &shown.lake.problems)
}

/// What a candidate is called: a pair by both.
pub(super) fn label(input: &Input<'_>, candidate: &Candidate) -> String {
    let parts = candidate
        .parts
        .iter()
        .map(|item| input.items[*item].label());
    escape(parts.collect::<Vec<_>>().join(" together with ").as_bytes())
}

fn write_difference(
    shown: &Shown<'_>,
    at: usize,
    difference: &Difference,
    out: &mut dyn Write,
) -> Result<()> {
    let (input, what) = (shown.input, &difference.what);
    let spared = if what.is_hit() { "" } else { " (spared)" };
    writeln!(out, "{at}. {}{spared}", label(input, what))?;
    wrapped(out, "   ", &numbers(what))?;
    if let Some(line) = order(what.order) {
        wrapped(out, "   ", &line)?;
    }
    if let Some(rates) = shown.jobs_by(what) {
        wrapped(
            out,
            "   ",
            &jobs_line("on nodes with it", "elsewhere", rates),
        )?;
    }
    for exception in difference.exceptions.iter().take(3) {
        wrapped(out, "   ", &spared_line(input, what, exception))?;
    }
    if !what.same.is_empty() {
        let same = what
            .same
            .iter()
            .map(|item| escape(input.items[*item].label().as_bytes()));
        let same: Vec<String> = same.take(MAX_LINES).collect();
        let more = what.same.len() - same.len();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let text = format!("cannot be told apart from: {}{more}", same.join(", "));
        wrapped(out, "   ", &text)?;
    }
    if !difference.folded.is_empty() {
        writeln!(out, "   Explained by it")?;
        for folded in difference.folded.iter().take(MAX_LINES) {
            let spared = if folded.is_hit() { "" } else { " (spared)" };
            let shares = shares(folded);
            wrapped(
                out,
                "     ",
                &format!("{}{spared}: {shares}", label(input, folded)),
            )?;
        }
        more(difference.folded.len(), out)?;
    }
    if !difference.effects.is_empty() {
        writeln!(out, "   Measured where it is")?;
        effects(input, &difference.effects, out)?;
    }
    writeln!(out)
}

/// `Jobs on nodes with it: 74 % of 812 succeeded; 98 % of 4,105 elsewhere (p = 2e-80).`
pub(in crate::commands) fn jobs_line(with: &str, elsewhere: &str, rates: Rates) -> String {
    let of = |rate: Rate| format!("{} of {}", percent(rate.share()), count(rate.all()));
    format!(
        "Jobs {with}: {} succeeded; {} {elsewhere} ({}).",
        of(rates.with),
        of(rates.elsewhere),
        chance("p", rates.p)
    )
}

fn more(n: usize, out: &mut dyn Write) -> Result<()> {
    match n.checked_sub(MAX_LINES) {
        Some(n) if n > 0 => writeln!(out, "     and {n} more"),
        _ => Ok(()),
    }
}

fn shares(candidate: &Candidate) -> String {
    let counts = candidate.counts;
    format!(
        "{} of bad nodes, {} of good ones",
        percent(counts.bad_share()),
        percent(counts.good_share())
    )
}

fn numbers(candidate: &Candidate) -> String {
    let odds = candidate.odds();
    let counts = candidate.counts;
    let with = counts.with();
    format!(
        "{}; of {} nodes with it {} are bad ({}). Odds ratio {} (95 %: {} to {}), {}",
        shares(candidate),
        count(with),
        count(counts.bad_with),
        percent(counts.bad_with as f64 / with.max(1) as f64),
        number(odds.ratio),
        number(odds.low),
        number(odds.high),
        chance("q", candidate.q)
    )
}

fn order(order: Order) -> Option<String> {
    let told = order.before + order.after;
    (told > 0).then(|| {
        format!(
            "There before the trouble began on {} of {} nodes where the order is known.",
            count(order.before),
            count(told)
        )
    })
}

pub(super) fn spared_line(input: &Input<'_>, cause: &Candidate, exception: &Exception) -> String {
    let item = |at: usize| escape(input.items[at].label().as_bytes());
    format!(
        "Spared: {} has {} on {} of {} nodes, but {} on {} of these (elsewhere {}).",
        item(exception.group),
        item(exception.has),
        count(exception.n_has),
        count(exception.n_group),
        label(input, cause),
        count(exception.n_cause),
        percent(exception.elsewhere)
    )
}

fn effects(input: &Input<'_>, effects: &[Effect], out: &mut dyn Write) -> Result<()> {
    for effect in effects.iter().take(MAX_LINES) {
        let line = match effect {
            Effect::Finding(finding) => {
                format!("{}: {}", label(input, finding), shares(finding))
            }
            Effect::Number(shifted) => {
                let shift = &shifted.shift;
                format!(
                    "{}: median {} on bad nodes, {} on good ones (shift 95 %: {} to {}), {}",
                    escape(input.measures[shifted.measure].fact.as_bytes()),
                    number(shift.bad_median),
                    number(shift.good_median),
                    number(shift.low),
                    number(shift.high),
                    chance("q", shifted.q)
                )
            }
        };
        wrapped(out, "     ", &line)?;
    }
    more(effects.len(), out)
}
