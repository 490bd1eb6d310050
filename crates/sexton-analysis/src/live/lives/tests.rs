//! A finding opens once, is resolved once it stays away, and comes back as the same one.

use sexton_model::diagnosis::{NotJudged, State};
use sexton_model::finding::Confidence;
use sexton_model::subject::Subject;

use super::*;
use crate::testing::at;

fn finding(severity: Severity) -> Finding {
    Finding {
        code: "MCG001",
        subject: Subject::node(),
        severity,
        confidence: Confidence::LIKELY,
        title: "a pile".into(),
        figure: "7".into(),
        since: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
        touched: Vec::new(),
        episodes: Vec::new(),
    }
}

/// What was found, or that the rule could not look.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    Blind,
    As(Severity),
}

fn diagnosis(found: Found) -> Diagnosis {
    let findings = match found {
        Found::As(severity) => vec![finding(severity)],
        _ => Vec::new(),
    };
    let not_judged = match found {
        Found::Blind => vec![NotJudged {
            code: "MCG001",
            what: "dying memory cgroups",
            because: "no census".into(),
            silent: None,
        }],
        _ => Vec::new(),
    };
    Diagnosis {
        window: None,
        state: State::Healthy,
        headline: String::new(),
        confidence: None,
        chains: Vec::new(),
        findings,
        fixable: Vec::new(),
        links: Vec::new(),
        separations: Vec::new(),
        explanations: Vec::new(),
        forecasts: Vec::new(),
        not_judged,
        step_downs: Vec::new(),
        gaps: Vec::new(),
    }
}

/// Steps of 30 s; the turns and at which step they come.
fn check(steps: &[Found], expected: &[(usize, Turn)]) {
    let mut lives = Lives::default();
    let mut turns = Vec::new();
    for (i, found) in steps.iter().enumerate() {
        let changes = lives.step(at(1000 + 30 * i as u64), &diagnosis(*found));
        turns.extend(changes.iter().map(|change| (i, change.turn)));
    }
    assert_eq!(turns, expected);
}

const BAD: Found = Found::As(Severity::Warning);
const WORSE: Found = Found::As(Severity::Serious);

#[test]
fn what_flickers_stays_open() {
    let steps = [BAD, Found::Nothing, BAD, Found::Nothing, BAD];
    check(&steps, &[(0, Turn::Opened)]);
}

#[test]
fn what_stays_away_is_resolved_and_reopens() {
    let steps = [BAD, Found::Nothing, Found::Nothing, Found::Nothing, BAD];
    check(
        &steps,
        &[(0, Turn::Opened), (2, Turn::Resolved), (4, Turn::Reopened)],
    );
}

#[test]
fn only_what_is_graver_than_ever_has_worsened() {
    let steps = [BAD, WORSE, BAD, WORSE];
    check(&steps, &[(0, Turn::Opened), (1, Turn::Worsened)]);
}

#[test]
fn a_rule_that_cannot_look_resolves_nothing() {
    let steps = [BAD, Found::Blind, Found::Blind, Found::Blind, Found::Blind];
    check(&steps, &[(0, Turn::Opened)]);
}

#[test]
fn lives_go_on_after_a_restart() {
    let mut lives = Lives::default();
    lives.step(at(1000), &diagnosis(BAD));
    let remembered: Vec<Life> = lives.open().cloned().collect();
    let mut resumed = Lives::resume(remembered);
    assert!(resumed.step(at(1300), &diagnosis(BAD)).is_empty());
    let over = resumed.step(at(1400), &diagnosis(Found::Nothing));
    assert_eq!(over.len(), 1);
    assert_eq!(over[0].life.opened, at(1000));
}

#[test]
fn hours_later_it_is_another_one() {
    let mut lives = Lives::default();
    lives.step(at(1000), &diagnosis(BAD));
    lives.step(at(2000), &diagnosis(Found::Nothing));
    let again = lives.step(at(2000 + 7 * 3600), &diagnosis(BAD));
    assert_eq!(again[0].turn, Turn::Opened);
}
