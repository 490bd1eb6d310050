//! UNIT003: a unit has failed
//!
//! Means: systemd gave the unit up. What it was for is not being done.
//! Not this: a service that passes through the state between two restarts (UNIT001).
//! By hand: `systemctl --failed`; `systemctl status UNIT`.
//! Next: `journalctl -u UNIT`; `systemctl reset-failed UNIT` once it is settled.

use std::collections::BTreeMap;

use sexton_model::fact::unit::{self as fact, UnitSeen, UnitStarted, UnitStopped};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::last_lines;
use crate::rule::{Cause, Findings, Rule};
use crate::words::unit_name::systemctl;

const CODE: &str = "UNIT003";

/// What systemd says when it stopped restarting because that came too often.
const LIMIT_HIT: &str = "start-limit-hit";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::UnitFailed,
    title: "a unit has failed",
    sees: "failed units",
    needs: &["units"],
    uses: &["journal"],
    is_essential: false,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[],
    source: include_str!("unit003_failed.rs"),
    judge,
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    // The last word on each unit: seen so, failed, or started since.
    let mut states: Vec<State<'_>> = Vec::new();
    let seen = case.events(&fact::UNIT_SEEN);
    states.extend(
        seen.chain(case.events(&fact::UNIT_CHANGED))
            .map(State::seen),
    );
    states.extend(case.events(&fact::UNIT_FAILED).map(State::failed));
    states.extend(case.events(&fact::UNIT_STARTED).map(State::started));
    // Of one moment, a start is the last word.
    states.sort_by_key(|state| (state.at, state.is_start));
    let mut last: BTreeMap<&Subject, State<'_>> = BTreeMap::new();
    for state in states {
        last.insert(state.unit, state);
    }
    for state in last.into_values().filter(|state| state.is_failed) {
        out.found(finding(case, &state));
    }
}

/// The state of a unit at a moment.
struct State<'a> {
    at: Moment,
    unit: &'a Subject,
    is_start: bool,
    is_failed: bool,
    result: Option<&'a str>,
    exit_status: Option<&'a str>,
    since: Option<Moment>,
}

impl<'a> State<'a> {
    /// It is told some time after it was read, and the unit may have failed in between: what counts
    /// is when the unit came into that state.
    fn seen(event: Event<'a, UnitSeen>) -> Self {
        let since = event.says.state_monotonic_ns.map(Moment::from_ns);
        Self {
            is_failed: event.says.active.as_deref() == Some("failed"),
            result: event.says.result.as_deref(),
            since,
            ..Self::at(
                since.map_or(event.at, |since| since.min(event.at)),
                event.subject,
            )
        }
    }

    fn failed(event: Event<'a, UnitStopped>) -> Self {
        Self {
            is_failed: true,
            result: event.says.result.as_deref(),
            exit_status: event.says.exit_status.as_deref(),
            ..Self::at(event.at, event.subject)
        }
    }

    fn started(event: Event<'a, UnitStarted>) -> Self {
        Self {
            is_start: true,
            ..Self::at(event.at, event.subject)
        }
    }

    fn at(at: Moment, unit: &'a Subject) -> Self {
        Self {
            at,
            unit,
            is_start: false,
            is_failed: false,
            result: None,
            exit_status: None,
            since: None,
        }
    }
}

fn finding(case: &Case<'_>, state: &State<'_>) -> Finding {
    let unit = state.unit;
    let name = &unit.name;
    let result = state.result.filter(|result| *result != "success");
    let why = match (result, state.exit_status) {
        (Some(result), Some(status)) => format!("{result}, status {status}"),
        (Some(result), None) => result.to_owned(),
        _ => "result unknown".into(),
    };
    let title = match result {
        Some(LIMIT_HIT) => format!("{name} hit its start limit; systemd stopped restarting it"),
        Some("dependency") => format!("{name} could not start: a dependency failed"),
        _ => format!("{name} has failed"),
    };
    let state_says = format!("its state is failed: {why}");
    let mut evidence = vec![Evidence::speaks_for("units", state_says).at(state.at)];
    evidence.extend(last_lines::evidence(case, unit));
    Finding {
        code: CODE,
        subject: unit.clone(),
        severity: Severity::Warning,
        confidence: Confidence::CERTAIN,
        title,
        figure: why.clone(),
        since: state.since.or(Some(state.at)),
        evidence,
        remedies: vec![
            Remedy::command(RemedyKind::Look, "Read why", systemctl("status", name)),
            Remedy::command(
                RemedyKind::CleanUp,
                "Clear the state once the cause is removed",
                systemctl("reset-failed", name),
            ),
        ],
        touched: vec![unit.clone()],
        episodes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::record::Sink;
    use sexton_model::subject::SubjectKind;

    use super::*;
    use crate::testing::{Watch, at};

    fn check(seen: &str, later: impl FnOnce(&mut Sink, &Subject), expected: usize) {
        let unit = Subject::new(SubjectKind::Unit, "a.service");
        let mut watch = Watch::new(100, 30);
        let mut out = Sink::new("units", at(100));
        let state = UnitSeen {
            active: Some(seen.to_owned()),
            ..UnitSeen::default()
        };
        out.event(at(100), &unit, &fact::UNIT_SEEN, state);
        later(&mut out, &unit);
        watch.add(out);
        assert_eq!(watch.judge(&RULE).findings.len(), expected, "{seen}");
    }

    #[test]
    fn the_last_word_counts() {
        let fails = |out: &mut Sink, unit: &Subject| {
            out.event(at(101), unit, &fact::UNIT_FAILED, UnitStopped::default());
        };
        let starts = |out: &mut Sink, unit: &Subject| {
            out.event(at(101), unit, &fact::UNIT_STARTED, UnitStarted::default());
        };
        check("failed", |_, _| {}, 1);
        check("active", fails, 1);
        check("failed", starts, 0);
        check("active", |_, _| {}, 0);
    }

    #[test]
    fn a_state_that_was_read_before_the_failure_and_told_after_it_is_older() {
        let unit = Subject::new(SubjectKind::Unit, "a.service");
        let mut watch = Watch::new(100, 30);
        let mut out = Sink::new("units", at(105));
        out.event(at(104), &unit, &fact::UNIT_FAILED, UnitStopped::default());
        let state = UnitSeen {
            active: Some("active".into()),
            state_monotonic_ns: Some(at(101).as_ns()),
            ..UnitSeen::default()
        };
        out.event(at(105), &unit, &fact::UNIT_SEEN, state);
        watch.add(out);
        assert_eq!(watch.judge(&RULE).findings.len(), 1);
    }

    #[test]
    fn without_systemd_it_is_not_judged() {
        let told = Watch::blind("units", "no").judge(&RULE);
        let silent: Vec<_> = told.not_judged.iter().map(|it| it.silent).collect();
        assert_eq!(silent, [Some("units")]);
    }
}
