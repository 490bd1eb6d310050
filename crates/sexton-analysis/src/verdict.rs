//! What all of it comes to.

pub(crate) mod age;
pub(crate) mod chain;

use sexton_model::diagnosis::{Link, NotJudged, State};
use sexton_model::finding::{Confidence, Finding, FindingId, Severity};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::rule::Rule;
use crate::rules;
use crate::verdict::chain::begins_with_a_cause;
use crate::words::figures;

/// The state, its sentence, and how sure it is.
pub(crate) struct Summary {
    pub(crate) state: State,
    pub(crate) headline: String,
    pub(crate) confidence: Option<Confidence>,
}

/// Sums up.
pub(crate) fn of(
    case: &Case<'_>,
    findings: &[Finding],
    links: &[Link],
    chains: &[Vec<FindingId>],
    not_judged: &[NotJudged],
) -> Summary {
    let unseen = Unseen::of(case, not_judged);
    let began = case.window().map(|window| *window.start());
    let state = state(findings, chains, &unseen, began);
    let gravest = chains.first().map_or(&[][..], Vec::as_slice);
    Summary {
        state,
        headline: headline(state, findings, chains, &unseen),
        // What is only worth knowing says nothing of how sure it is that all is well.
        confidence: match state {
            State::CauseFound | State::SymptomsOnly => {
                confidence(findings, links, sure_part(findings, gravest).0)
            }
            State::Healthy | State::Blind => None,
        },
    }
}

/// Vital signs that were not assessed: rules without which no node is called healthy.
struct Unseen {
    /// The sensor was there and not heard: it failed, or was told not to look.
    blind: Vec<&'static str>,
    /// The sexton that recorded was older than the sensor.
    newer: Vec<&'static str>,
}

impl Unseen {
    fn of(case: &Case<'_>, not_judged: &[NotJudged]) -> Self {
        let rules = not_judged
            .iter()
            .filter_map(|rule| rules::by_code(rule.code));
        let vital = rules.filter(|rule| rule.is_essential);
        let (newer, blind): (Vec<&Rule>, Vec<&Rule>) =
            vital.partition(|rule| rule.is_newer_than(case));
        let words = |rules: Vec<&Rule>| rules.into_iter().map(|rule| rule.sees).collect();
        Self {
            blind: words(blind),
            newer: words(newer),
        }
    }
}

fn state(
    findings: &[Finding],
    chains: &[Vec<FindingId>],
    unseen: &Unseen,
    began: Option<Moment>,
) -> State {
    let gravest = chains.first().map_or(&[][..], Vec::as_slice);
    // What is over sorts behind what is not, and may be graver than all that goes on.
    let is_trouble = !age::is_over(findings, gravest, began)
        && gravest
            .iter()
            .filter_map(|id| finding(findings, id))
            .any(|finding| finding.severity > Severity::Note);
    match is_trouble {
        true if begins_with_a_cause(findings, gravest) => State::CauseFound,
        true => State::SymptomsOnly,
        false if !unseen.blind.is_empty() => State::Blind,
        false => State::Healthy,
    }
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

/// Words of a headline, at most: more are not read at a glance.
const MOST_WORDS: usize = 25;

fn headline(
    state: State,
    findings: &[Finding],
    chains: &[Vec<FindingId>],
    unseen: &Unseen,
) -> String {
    match state {
        State::CauseFound | State::SymptomsOnly => {
            let gravest = chains.first().map_or(&[][..], Vec::as_slice);
            sentence(findings, gravest)
        }
        State::Healthy => {
            let older = match unseen.newer.len() {
                0 => String::new(),
                n => format!(
                    ", but an older sexton recorded this: {} not assessed",
                    figures::plural(n as u64, "vital sign")
                ),
            };
            format!("no problem found{older}")
        }
        State::Blind => format!(
            "no finding, but too little data for a verdict: {} unseen",
            named(&unseen.blind)
        ),
    }
}

/// A chain in one sentence: its root, and the worst that came of it.
fn sentence(findings: &[Finding], chain: &[FindingId]) -> String {
    let (sure, doubtful) = sure_part(findings, chain);
    let of = |id: &FindingId| finding(findings, id);
    let Some(root) = sure.first().and_then(of) else {
        return String::new();
    };
    let worst = sure[1..].last().and_then(of);
    let told = match worst {
        Some(worst) => {
            let main_clause = worst.title.split(", ").next().unwrap_or(&worst.title);
            let in_short = match worst.subject == root.subject {
                true => worst.figure.clone(),
                false => format!("{}: {}", named_subject(&worst.subject), worst.figure),
            };
            let by_whom = holder(findings, sure, worst).map(|who| format!("{in_short}, by {who}"));
            let ways = [&*worst.title, main_clause, &in_short];
            let ways = by_whom.as_deref().into_iter().chain(ways);
            let mut ways = ways.map(|way| format!("{}; {way}", root.title));
            let fits = ways.find(|way| n_words(way) <= MOST_WORDS);
            fits.unwrap_or_else(|| root.title.clone())
        }
        None => root.title.clone(),
    };
    let possible = doubtful.last().and_then(of);
    let possible = possible.map(|finding| format!("{told}; possible: {}", finding.title));
    let whole = possible.filter(|whole| n_words(whole) <= MOST_WORDS);
    shortened(whole.unwrap_or(told))
}

/// The process that has the core which a chain ends in, unless the chain begins with it.
fn holder<'a>(findings: &'a [Finding], sure: &[FindingId], worst: &Finding) -> Option<&'a str> {
    if worst.subject.kind != SubjectKind::Cpu {
        return None;
    }
    let [_, between @ .., _] = sure else {
        return None;
    };
    let before = finding(findings, between.last()?)?;
    let is_program = matches!(
        before.subject.kind,
        SubjectKind::Process | SubjectKind::Task
    );
    is_program.then_some(&*before.subject.name)
}

/// What a finding is about, as its title would say it.
fn named_subject(subject: &Subject) -> String {
    match subject.kind {
        SubjectKind::Node => "this node".into(),
        SubjectKind::Cpu => format!("core {}", subject.name),
        _ => subject.name.to_string(),
    }
}

/// A few blind spots by their names, of more the first and their number.
fn named(unseen: &[&str]) -> String {
    match unseen {
        [] | [_] | [_, _] | [_, _, _] => unseen.join(", "),
        [first, second, rest @ ..] => format!(
            "{first}, {second} and {}",
            figures::plural(rest.len() as u64, "more vital sign")
        ),
    }
}

fn n_words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The names of things may have any number of words.
fn shortened(text: String) -> String {
    if n_words(&text) <= MOST_WORDS {
        return text;
    }
    let words: Vec<&str> = text.split_whitespace().take(MOST_WORDS).collect();
    format!("{}…", words.join(" "))
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
