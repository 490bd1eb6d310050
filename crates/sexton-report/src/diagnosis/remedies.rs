//! What to do about a judgement: the gravest chain first, each thing once.

use sexton_model::diagnosis::{Diagnosis, State};
use sexton_model::finding::{Finding, Remedy, RemedyKind};
use sexton_model::fix;

/// The kinds in the order in which they are typed, and their headings.
pub(super) const KINDS: [(RemedyKind, &str); 4] = [
    (RemedyKind::Stop, "Stop it now"),
    (RemedyKind::CleanUp, "Clean up what it left"),
    (RemedyKind::Prevent, "Keep it from coming back"),
    (RemedyKind::Look, "Look closer"),
];

/// The remedies of one kind.
pub(super) fn of_kind(diagnosis: &Diagnosis, kind: RemedyKind) -> Vec<&Remedy> {
    let mut remedies: Vec<&Remedy> = Vec::new();
    for remedy in in_order(diagnosis)
        .into_iter()
        .flat_map(|finding| &finding.remedies)
    {
        let is_known = remedies.iter().any(|known| match &remedy.command {
            Some(_) => known.command == remedy.command,
            None => known.text == remedy.text,
        });
        if remedy.kind == kind && !is_known {
            remedies.push(remedy);
        }
    }
    remedies
}

/// What does the first two kinds at once.
pub(super) struct InOnePlan {
    pub(super) heading: &'static str,
    pub(super) text: &'static str,
    pub(super) command: &'static str,
}

/// The way to have sexton do it, where there is something that a fix does by itself.
pub(super) fn in_one_plan(diagnosis: &Diagnosis) -> Option<InOnePlan> {
    let is_fixed = |finding: &&Finding| {
        let (kind, name) = (finding.subject.kind.name(), &finding.subject.name);
        fix::stops(finding.code, kind, name) || fix::frees(finding.code, kind)
    };
    let can = diagnosis.state == State::CauseFound && in_order(diagnosis).iter().any(is_fixed);
    can.then_some(InOnePlan {
        heading: "Or let sexton do it",
        text: "a plan first; --apply carries it out, and fix --undo takes it back",
        command: "sudo sexton fix",
    })
}

/// Findings chain by chain, gravest first, each once.
pub(super) fn in_order(diagnosis: &Diagnosis) -> Vec<&Finding> {
    let mut findings: Vec<&Finding> = Vec::new();
    for id in diagnosis.chains.iter().flatten() {
        if let Some(finding) = diagnosis.finding(id)
            && !findings.iter().any(|known| known.id() == *id)
        {
            findings.push(finding);
        }
    }
    findings
}

/// What would let sexton see more, each thing once; most telling where it could not judge.
pub(super) fn to_see_more(diagnosis: &Diagnosis) -> Vec<&str> {
    let mut remedies: Vec<&str> = Vec::new();
    for gap in &diagnosis.gaps {
        if let Some(remedy) = gap.remedy.as_deref()
            && !remedies.contains(&remedy)
        {
            remedies.push(remedy);
        }
    }
    remedies
}

/// The state in words, for the head of a page.
pub(super) fn state_words(state: State) -> &'static str {
    match state {
        State::CauseFound => "CAUSE FOUND",
        State::SymptomsOnly => "SYMPTOMS ONLY",
        State::Healthy => "HEALTHY",
        State::Blind => "BLIND",
    }
}
