//! What all of it comes to.

pub(crate) mod chain;

use sexton_model::diagnosis::{Link, NotJudged, State};
use sexton_model::finding::{Confidence, Finding, FindingId, Severity};

use crate::rules;
use crate::verdict::chain::begins_with_a_cause;

/// The state, its sentence, and how sure it is.
pub(crate) struct Summary {
    pub(crate) state: State,
    pub(crate) headline: String,
    pub(crate) confidence: Option<Confidence>,
}

/// Sums up.
pub(crate) fn of(
    findings: &[Finding],
    links: &[Link],
    chains: &[Vec<FindingId>],
    not_judged: &[NotJudged],
) -> Summary {
    let state = state(findings, chains, not_judged);
    let gravest = chains.first().map_or(&[][..], Vec::as_slice);
    Summary {
        state,
        headline: headline(state, findings, chains, not_judged),
        // What is only worth knowing says nothing of how sure it is that all is well.
        confidence: match state {
            State::CauseFound | State::SymptomsOnly => {
                confidence(findings, links, sure_part(findings, gravest).0)
            }
            State::Healthy | State::Blind => None,
        },
    }
}

fn state(findings: &[Finding], chains: &[Vec<FindingId>], not_judged: &[NotJudged]) -> State {
    let is_trouble = findings
        .iter()
        .any(|finding| finding.severity > Severity::Note);
    let gravest = chains.first().map_or(&[][..], Vec::as_slice);
    match is_trouble {
        true if begins_with_a_cause(findings, gravest) => State::CauseFound,
        true => State::SymptomsOnly,
        false if not_judged.iter().any(is_essential) => State::Blind,
        false => State::Healthy,
    }
}

fn is_essential(not_judged: &NotJudged) -> bool {
    rules::by_code(not_judged.code).is_some_and(|rule| rule.is_essential)
}

/// The chain up to the last of its gravest findings, and what may have come of it.
fn sure_part<'a>(
    findings: &[Finding],
    chain: &'a [FindingId],
) -> (&'a [FindingId], &'a [FindingId]) {
    let severity = |id: &FindingId| finding(findings, id).map(|finding| finding.severity);
    let gravest = chain.iter().map(severity).max();
    let last = chain.iter().rposition(|id| Some(severity(id)) == gravest);
    let end = last.map_or(chain.len(), |last| last + 1);
    // Only what is doubtful is kept apart.
    let is_doubtful = |id: &FindingId| {
        finding(findings, id).is_some_and(|finding| finding.confidence < Confidence::POSSIBLE)
    };
    match chain[end..].iter().all(is_doubtful) {
        true => chain.split_at(end),
        false => (chain, &[]),
    }
}

fn finding<'a>(findings: &'a [Finding], id: &FindingId) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.id() == *id)
}

fn headline(
    state: State,
    findings: &[Finding],
    chains: &[Vec<FindingId>],
    not_judged: &[NotJudged],
) -> String {
    let gravest = chains.first().map_or(&[][..], Vec::as_slice);
    let other = separate_cause(findings, chains);
    let other = other.map_or(String::new(), |other| {
        format!("; separately, {}", other.title)
    });
    match state {
        State::CauseFound => format!("{}{other}", sentence(findings, gravest)),
        State::SymptomsOnly => {
            let told = sentence(findings, gravest);
            format!("{told}; what causes it is not known{other}")
        }
        State::Healthy => "nothing is wrong with this node, as far as sexton looks".into(),
        State::Blind => {
            let codes: Vec<&str> = not_judged.iter().map(|rule| rule.code).collect();
            format!(
                "too little was seen to judge this node: {} not judged",
                codes.join(", ")
            )
        }
    }
}

/// A chain in one sentence: what it began with, who suffers from that in the middle, what
/// it ends with.
fn sentence(findings: &[Finding], chain: &[FindingId]) -> String {
    let (sure, doubtful) = sure_part(findings, chain);
    let title = |id: &FindingId| finding(findings, id).map(|finding| finding.title.as_str());
    let Some((first, rest)) = sure.split_first() else {
        return String::new();
    };
    let mut told: Vec<String> = title(first).map(str::to_owned).into_iter().collect();
    if let Some((last, between)) = rest.split_last() {
        let reader = between.iter().filter_map(|id| finding(findings, id));
        let mut reader = reader.filter(|finding| finding.code == "CPU002");
        told.extend(reader.next().map(|reader| reader.title.clone()));
        told.extend(title(last).map(|last| format!("in the end {last}")));
    }
    let doubtful = doubtful.last().and_then(title);
    told.extend(doubtful.map(|doubtful| format!("perhaps {doubtful}")));
    told.join("; ")
}

/// The cause of another chain that has nothing to do with the gravest one.
fn separate_cause<'a>(findings: &'a [Finding], chains: &[Vec<FindingId>]) -> Option<&'a Finding> {
    let (gravest, others) = chains.split_first()?;
    let is_separate = |chain: &&Vec<FindingId>| !chain.iter().any(|id| gravest.contains(id));
    let mut others = others
        .iter()
        .filter(is_separate)
        .filter(|chain| begins_with_a_cause(findings, chain))
        .filter_map(|chain| finding(findings, chain.first()?));
    others.find(|cause| cause.severity > Severity::Note)
}

/// As sure as the weakest finding and link of the chain, up to its gravest symptom.
fn confidence(findings: &[Finding], links: &[Link], chain: &[FindingId]) -> Option<Confidence> {
    let of_findings = findings
        .iter()
        .filter(|finding| chain.contains(&finding.id()))
        .map(|finding| finding.confidence);
    let of_links = chain.windows(2).filter_map(|pair| {
        let joins = |link: &&Link| link.cause == pair[0] && link.effect == pair[1];
        links.iter().find(joins).map(|link| link.confidence)
    });
    of_findings.chain(of_links).min()
}

#[cfg(test)]
mod tests;
