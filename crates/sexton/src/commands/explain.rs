//! `sexton explain`

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use sexton_analysis::rules::RULES;
use sexton_analysis::{Cause, Rule};
use sexton_report::explain::{RulePage, ThresholdLine, list, text};

use super::image::img001_policy;
use crate::cli::ExplainArgs;
use crate::exit::Exit;

/// Writes the page of a rule, or lists all.
pub fn run(args: &ExplainArgs) -> Result<Exit> {
    let mut out = BufWriter::new(io::stdout().lock());
    match &args.code {
        Some(code) => {
            let found = pages()
                .into_iter()
                .find(|page| page.code.eq_ignore_ascii_case(code));
            let page = found.with_context(|| {
                format!("no rule has the code {code}; sexton explain lists all")
            })?;
            text(&mut out, &page)?;
        }
        None => list(&mut out, &pages())?,
    }
    out.flush()?;
    Ok(Exit::NothingFound)
}

/// The pages of all rules, from cause to symptom, and of what only the gate of images says.
pub fn pages() -> Vec<RulePage<'static>> {
    let rules = RULES.iter().map(|rule| page(rule));
    rules.chain([img001_policy::page()]).collect()
}

fn page(rule: &'static Rule) -> RulePage<'static> {
    let thresholds = rule.thresholds.iter().map(|threshold| ThresholdLine {
        name: threshold.name,
        default: threshold.default,
        range: threshold.range,
        unit: threshold.unit,
        why: threshold.why,
    });
    RulePage {
        code: rule.code,
        title: rule.title,
        manual: rule.manual(),
        needs: rule.needs,
        uses: rule.uses,
        standing: None,
        is_essential: rule.is_essential,
        is_cause: rule.cause != Cause::Never,
        thresholds: thresholds.collect(),
    }
}
