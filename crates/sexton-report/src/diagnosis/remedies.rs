//! What to do about a judgement: the gravest chain first, each thing once.

use sexton_model::diagnosis::{Diagnosis, State};
use sexton_model::finding::{Finding, FindingId, Remedy, RemedyKind};

use crate::paint::Paint;

/// The kinds in the order in which they are typed, and their headings.
pub(super) const KINDS: [(RemedyKind, &str); 4] = [
    (RemedyKind::Stop, "Stop it now"),
    (RemedyKind::CleanUp, "Clean up"),
    (RemedyKind::Prevent, "Prevent it"),
    (RemedyKind::Look, "Investigate"),
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

/// Commands that are typed first.
const MOST_NOW: usize = 3;

/// What to type now: what stops each chain, the gravest first; then, of the gravest alone, what
/// cleans up or prevents, and always what investigates.
pub(super) fn now(diagnosis: &Diagnosis) -> Vec<(RemedyKind, &str)> {
    let of_chain = |chain: &[FindingId], kind: RemedyKind| {
        let findings = chain.iter().filter_map(|id| diagnosis.finding(id));
        let mut remedies = findings.flat_map(|finding| &finding.remedies);
        let command = remedies.find_map(|remedy| {
            let is_it = remedy.kind == kind;
            let command = remedy.command.as_deref().filter(|_| is_it)?;
            // A placeholder cannot be typed.
            (!command.ends_with(" ROOT")).then_some(command)
        })?;
        Some((kind, command))
    };
    let stops = diagnosis.chains.iter().take(MOST_NOW - 1);
    let stops = stops.filter_map(|chain| of_chain(chain, RemedyKind::Stop));
    let gravest = diagnosis.chains.first().map_or(&[][..], Vec::as_slice);
    let others = [RemedyKind::CleanUp, RemedyKind::Prevent, RemedyKind::Look];
    let others = others
        .into_iter()
        .filter_map(|kind| of_chain(gravest, kind));
    let mut commands: Vec<(RemedyKind, &str)> = Vec::new();
    for (kind, command) in stops.chain(others) {
        if !commands.iter().any(|(_, known)| *known == command) {
            commands.push((kind, command));
        }
    }
    let left_out = commands.split_off(commands.len().min(MOST_NOW));
    // Who stops a thing has to know why it is as it is, more than how to keep it from coming back.
    let mut left_out = left_out.into_iter();
    if let Some(look) = left_out.find(|(kind, _)| *kind == RemedyKind::Look) {
        commands[MOST_NOW - 1] = look;
    }
    commands
}

/// What does the first two kinds at once.
pub(super) struct InOnePlan {
    pub(super) heading: &'static str,
    pub(super) text: &'static str,
    pub(super) command: &'static str,
}

/// The way to have sexton do it, where there is something that a fix does by itself.
pub(super) fn in_one_plan(diagnosis: &Diagnosis) -> Option<InOnePlan> {
    let can = diagnosis.state == State::CauseFound && !diagnosis.fixable.is_empty();
    can.then_some(InOnePlan {
        heading: "Or let sexton do it",
        text: "prints a plan; --apply carries it out, sexton fix --undo reverts it",
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
/// The state, with how sure it is. What is not known cannot be certain: there the word is said of
/// the symptoms, and only if they are in doubt.
pub(super) fn state_line(diagnosis: &Diagnosis, paint: Paint) -> String {
    let state = diagnosis.state;
    let words = state_words(state);
    let sure = diagnosis.confidence.map(|confidence| confidence.word());
    match (words.split_once(','), sure) {
        (Some((found, unknown)), Some(word)) if word != "certain" => {
            paint.on(state.into(), &format!("{found} ({word}),{unknown}"))
        }
        (None, Some(word)) => format!("{} ({word})", paint.on(state.into(), words)),
        _ => paint.on(state.into(), words),
    }
}

pub(super) fn state_words(state: State) -> &'static str {
    match state {
        State::CauseFound => "ROOT CAUSE FOUND",
        State::SymptomsOnly => "SYMPTOMS FOUND, ROOT CAUSE UNKNOWN",
        State::Healthy => "HEALTHY",
        State::Blind => "CANNOT TELL",
    }
}
