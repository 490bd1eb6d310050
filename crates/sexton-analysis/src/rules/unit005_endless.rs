//! UNIT005: a unit's settings make an endless loop
//!
//! Means: when this unit fails, systemd starts it again without end: its start limit cannot
//! be reached, because the delay between starts is too long for the window in which they
//! are counted, or nothing is counted. Every start makes a memory cgroup.
//! Reported for units that are known to be of no use or cannot start, and for those that neither
//! the shape nor a signature knows: a loop that never begins does no harm.
//! Not this: a unit that restarts right now (UNIT001).
//! By hand: `systemctl show -p RestartUSec,StartLimitIntervalUSec,StartLimitBurst UNIT`.
//! Next: turn the unit off, or bound it: a drop-in with `StartLimitIntervalSec=1h`.

use sexton_model::fact::unit::UNIT_FILE;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;

use crate::case::Case;
use crate::evidence::unit_files::Weighed;
use crate::rule::{Cause, Findings, Rule};
use crate::words::figures::count;
use crate::words::unit_name::systemctl;

const CODE: &str = "UNIT005";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::UnitLoop,
    title: "a unit's settings make an endless loop",
    sees: "endless units",
    needs: &["unit_files"],
    uses: &[],
    is_essential: false,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[],
    source: include_str!("unit005_endless.rs"),
    judge,
};

/// The last word of the files on each unit.
fn judge(case: &Case<'_>, out: &mut Findings) {
    for events in case.events_by_subject(&UNIT_FILE).into_values() {
        let found = events.last().and_then(|last| finding(Weighed(*last)));
        found.into_iter().for_each(|found| out.found(found));
    }
}

fn finding(unit: Weighed<'_>) -> Option<Finding> {
    let harms = unit.is_unwanted() || unit.is_broken();
    let is_known = matches!(unit.role(), Some("must" | "may"));
    if !unit.is_endless() || unit.says().skipped.is_some() || is_known && !harms {
        return None;
    }
    let subject = unit.0.subject.clone();
    let name = subject.name.to_string();
    let runs = unit.says().runs_per_day.unwrap_or(0);
    Some(Finding {
        code: CODE,
        severity: if harms {
            Severity::Warning
        } else {
            Severity::Note
        },
        confidence: if harms {
            Confidence::LIKELY
        } else {
            Confidence::POSSIBLE
        },
        title: format!(
            "{name} has no effective start limit: up to {} restarts a day if it fails",
            count(runs)
        ),
        figure: format!("up to {} restarts/day", count(runs)),
        since: None,
        evidence: evidence(unit),
        remedies: vec![Remedy::command(
            RemedyKind::Prevent,
            "Set a start limit",
            format!(
                "{}   # [Unit] StartLimitIntervalSec=1h StartLimitBurst=10",
                systemctl("edit", &name)
            ),
        )],
        touched: Vec::new(),
        episodes: Vec::new(),
        subject,
    })
}

fn evidence(unit: Weighed<'_>) -> Vec<Evidence> {
    let says = unit.says();
    let runs = says.runs_per_day.unwrap_or(0);
    let arithmetic = says.arithmetic.as_deref().unwrap_or_default();
    let restart = says.restart.as_deref().unwrap_or_default();
    let mut evidence = vec![
        Evidence::speaks_for("unit_files", format!("Restart={restart}; {arithmetic}")),
        Evidence::speaks_for(
            "unit_files",
            format!(
                "at most {} runs a day, each in a new memory cgroup",
                count(runs)
            ),
        )
        .value(runs as f64),
    ];
    match says.prevented_by.is_empty() {
        false => evidence.push(Evidence::against(
            "unit_files",
            format!(
                "exit codes that stop the restarts: {}",
                says.prevented_by.join(" ")
            ),
        )),
        true => evidence.push(Evidence::speaks_for(
            "unit_files",
            "no RestartPreventExitStatus= stops the restarts",
        )),
    }
    evidence
}
