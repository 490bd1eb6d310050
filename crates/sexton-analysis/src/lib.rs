//! Judges what was seen. Pure: records in, a diagnosis out; the same records give the same
//! diagnosis on any machine, in whatever order they come.
//!
//! - `evidence`: views of what was recorded, shared by all that follows;
//! - `rules`: one file per rule, each looks for one trouble by itself;
//! - `links`: one file per pair of rules that may be cause and effect, each says whether the
//!   evidence of two findings meets;
//! - `explanations`: one file per other explanation, ruled out aloud;
//! - `verdict`: findings and links to chains, gravest first, and the answer in one sentence;
//! - `live`: the same judgement while a node is recorded: a sliding window, a verdict every
//!   half a minute, and the lives of findings;
//! - `gate`: the checks of `sexton check`.

mod case;
pub mod evidence;
mod explanations;
pub mod gate;
mod links;
pub mod live;
mod policy;
mod rule;
pub mod rules;
#[cfg(test)]
mod testing;
mod verdict;
mod words;

pub use case::Case;
pub use policy::file::{PolicyFile, PolicyFileError};
pub use policy::{Policy, PolicyError};
pub use rule::{Cause, Findings, Rule, Threshold, manual};

use sexton_model::diagnosis::Diagnosis;
use sexton_model::fact::sexton::{SEXTON_STEP_DOWN, StepDown};
use sexton_model::finding::{Finding, FindingId};
use sexton_model::fix::Offer;
use sexton_model::gap::Gap;
use sexton_model::timeline::Timeline;

use evidence::recognized::Recognized;

/// Judges a node by what was recorded of it.
pub fn judge(timeline: &dyn Timeline, policy: &Policy) -> Diagnosis {
    let recognized = Recognized::new(timeline, policy.signatures());
    let case = Case::new(&recognized, policy);
    let mut findings = Findings::default();
    for rule in rules::RULES {
        rule.apply(&case, &mut findings);
    }
    let Findings {
        mut findings,
        mut not_judged,
        forecasts,
    } = findings;
    findings.sort_by_cached_key(|finding| finding.id());
    not_judged.sort_by_key(|not_judged| not_judged.code);
    let (links, separations) = links::find(&case, &findings);
    let explanations = explanations::weigh(&case, &findings);
    let began = case.window().map(|window| *window.start());
    let chains = verdict::chain::chains(&findings, &links, began);
    let summary = verdict::of(&case, &findings, &links, &chains, &not_judged);
    Diagnosis {
        window: case.window(),
        state: summary.state,
        headline: summary.headline,
        confidence: summary.confidence,
        chains,
        fixable: fixable(&findings),
        findings,
        links,
        separations,
        explanations,
        forecasts,
        not_judged,
        step_downs: step_downs(&case),
        gaps: distinct_gaps(&case),
    }
}

/// The findings whose rules offer an act that fits their subject.
fn fixable(findings: &[Finding]) -> Vec<FindingId> {
    let is_fixable = |finding: &&Finding| {
        let offer = rules::by_code(finding.code).map_or(Offer::NOTHING, |rule| rule.offer);
        let (kind, name) = (finding.subject.kind.name(), &finding.subject.name);
        offer.stops(kind, name) || offer.frees(kind)
    };
    let fixable = findings.iter().filter(is_fixable);
    fixable.map(Finding::id).collect()
}

/// What these rules find, without chains and verdict: an image has thousands of
/// units, and none of them is the cause of another.
pub fn findings(timeline: &dyn Timeline, policy: &Policy, rules: &[&Rule]) -> Vec<Finding> {
    let case = Case::new(timeline, policy);
    let mut found = Findings::default();
    for rule in rules {
        rule.apply(&case, &mut found);
    }
    let mut findings = found.findings;
    findings.sort_by_cached_key(Finding::id);
    findings
}

/// Each gap once, however often it was told. Those of one sensor that differ in numbers alone,
/// as how long something took, are one.
fn distinct_gaps(case: &Case<'_>) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for (_, _, gap) in case.gaps() {
        let is_told = |known: &Gap| {
            known.sensor == gap.sensor && without_numbers(&known.text) == without_numbers(&gap.text)
        };
        if !gaps.iter().any(is_told) {
            gaps.push((*gap).clone());
        }
    }
    gaps
}

fn without_numbers(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    text.split(is_number)
        .filter(|part| !part.is_empty())
        .collect()
}

/// What was seen by lesser means, each once.
fn step_downs(case: &Case<'_>) -> Vec<StepDown> {
    let mut steps: Vec<StepDown> = Vec::new();
    for event in case.events(&SEXTON_STEP_DOWN) {
        if !steps.contains(event.says) {
            steps.push(event.says.clone());
        }
    }
    steps
}
