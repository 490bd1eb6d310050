//! UNIT003: a unit has failed
//!
//! Means: systemd gave the unit up. What it was for is not being done.
//! Not this: a service that passes through the state between two restarts (UNIT001).
//! By hand: `systemctl --failed`; `systemctl status UNIT`.
//! Next: `journalctl -u UNIT`; `systemctl reset-failed UNIT` once it is settled.

use std::collections::BTreeMap;

use sexton_model::fact::unit as fact;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::rule::{Findings, Rule};
use crate::unit_name::systemctl;

const CODE: &str = "UNIT003";

/// What systemd says when it stopped restarting because that came too often.
const LIMIT_HIT: &str = "start-limit-hit";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    title: "a unit has failed",
    needs: &["units"],
    uses: &[],
    is_essential: false,
    is_cause: false,
    thresholds: &[],
    source: include_str!("unit003_failed.rs"),
    judge,
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    // The last word on each unit: seen so, failed, or started since.
    let mut last: BTreeMap<&Subject, (&Record, bool)> = BTreeMap::new();
    let facts = [
        &fact::UNIT_SEEN,
        &fact::UNIT_CHANGED,
        &fact::UNIT_FAILED,
        &fact::UNIT_STARTED,
    ];
    let mut records: Vec<&Record> = facts
        .iter()
        .flat_map(|fact| case.of(fact))
        .copied()
        .collect();
    records.sort_by_key(|record| (record.at, record.fact() == Some(&fact::UNIT_STARTED)));
    for record in records {
        let is_failed = match record.fact() {
            Some(fact) if fact == &fact::UNIT_FAILED => true,
            Some(fact) if fact == &fact::UNIT_STARTED => false,
            _ => record.detail("active") == Some("failed"),
        };
        last.insert(&record.subject, (record, is_failed));
    }
    for (unit, (record, _)) in last.into_iter().filter(|(_, (_, is_failed))| *is_failed) {
        out.found(finding(unit, record));
    }
}

fn finding(unit: &Subject, record: &Record) -> Finding {
    let name = &unit.name;
    let result = record
        .detail("result")
        .filter(|result| *result != "success");
    let why = match (result, record.detail("exit_status")) {
        (Some(result), Some(status)) => format!("{result}, status {status}"),
        (Some(result), None) => result.to_owned(),
        _ => "the result is not known".into(),
    };
    let state_ns = record
        .detail("state_monotonic_ns")
        .and_then(|ns| ns.parse().ok());
    let title = match result {
        Some(LIMIT_HIT) => format!("{name} was started too often and given up"),
        Some("dependency") => format!("{name} could not start: what it depends on failed"),
        _ => format!("{name} has failed"),
    };
    Finding {
        code: CODE,
        subject: unit.clone(),
        severity: Severity::Warning,
        confidence: Confidence::CERTAIN,
        title,
        figure: why.clone(),
        since: state_ns.map(Moment::from_ns).or(Some(record.at)),
        evidence: vec![
            Evidence::speaks_for("units", format!("its state is failed: {why}")).at(record.at),
        ],
        remedies: vec![
            Remedy::command(RemedyKind::Look, "see why", systemctl("status", name)),
            Remedy::command(
                RemedyKind::CleanUp,
                "forget it once it is settled",
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

    fn check(told: &[(&'static sexton_model::fact::Fact, &str)], expected: usize) {
        let unit = Subject::new(SubjectKind::Unit, "a.service");
        let mut watch = Watch::new(100, 30);
        let mut out = Sink::new("units", at(100));
        for (i, (fact, active)) in told.iter().enumerate() {
            let details = vec![("active".into(), (*active).to_owned())];
            out.event(at(100 + i as u64), &unit, fact, details);
        }
        watch.add(out);
        assert_eq!(watch.judge(&RULE).findings.len(), expected, "{told:?}");
    }

    #[test]
    fn the_last_word_counts() {
        check(&[(&fact::UNIT_SEEN, "failed")], 1);
        check(&[(&fact::UNIT_SEEN, "active"), (&fact::UNIT_FAILED, "")], 1);
        check(
            &[(&fact::UNIT_SEEN, "failed"), (&fact::UNIT_STARTED, "")],
            0,
        );
        check(&[(&fact::UNIT_SEEN, "active")], 0);
    }

    #[test]
    fn without_systemd_it_is_not_judged() {
        assert_eq!(Watch::blind("units", "no").judge(&RULE).not_judged.len(), 1);
    }
}
