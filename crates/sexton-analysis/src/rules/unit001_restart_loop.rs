//! UNIT001: a unit restarts in a loop
//!
//! Means: the unit exits and systemd restarts it, over and over. Each run has a fresh
//! cgroup and costs a start; loops slower than the start limit go on for ever.
//! Not this: a unit that a timer starts as it should; a unit that an operator restarted a
//! few times; one that was stopped after its loop, which keeps its `NRestarts`; a supervisor that
//! restarts its own children (UNIT002).
//! By hand: `systemctl show -p NRestarts,Restart,RestartUSec UNIT`, twice; `journalctl -u UNIT`.
//! A manual start sets `NRestarts` back to 0.
//! Next: `systemctl status UNIT` for why it ends; UNIT005 and UNIT006 for what its settings
//! say.

use std::collections::BTreeSet;
use std::time::Duration;

use sexton_model::fact::unit::{self as fact, UnitStopped};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::{Act, Offer};
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::last_lines;
use crate::evidence::restart_loops::{
    LEAST_HISTORY, LEAST_PER_HOUR, LEAST_RESTARTS, Loop, watched,
};
use crate::rule::{Cause, Findings, Rule};
use crate::words::figures;
use crate::words::unit_name::{self, journal};

const CODE: &str = "UNIT001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::UnitLoop,
    title: "a unit restarts in a loop",
    sees: "restart loops",
    needs: &["units"],
    uses: &["journal"],
    is_essential: false,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer(&[Act::Bound, Act::Stop, Act::Mask, Act::Purge]),
    thresholds: &[&LEAST_RESTARTS, &LEAST_HISTORY, &LEAST_PER_HOUR],
    source: include_str!("unit001_restart_loop.rs"),
    judge,
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let mut restarts = case.by_subject(&fact::UNIT_RESTARTS);
    let mut starts = case.events_by_subject(&fact::UNIT_STARTED);
    let mut stops = case.events_by_subject(&fact::UNIT_STOPPED);
    let units: BTreeSet<&Subject> = restarts.keys().chain(starts.keys()).copied().collect();
    for unit in units {
        let counts = restarts.remove(unit).unwrap_or_default();
        let loops = Loop::of(case, unit, counts, starts.remove(unit).unwrap_or_default());
        if loops.is_one(case) {
            out.found(loops.finding(case, &stops.remove(unit).unwrap_or_default()));
        }
    }
}

impl Loop<'_> {
    fn finding(&self, case: &Case<'_>, stops: &[Event<'_, UnitStopped>]) -> Finding {
        let name = &self.unit.name;
        let watched = watched(case);
        let n = self.in_window().max(self.triggered.len() as f64);
        let title = match (self.is_only_triggered(), n > 0.0) {
            (true, _) => format!(
                "{} starts {name} {}",
                self.triggers().join(" "),
                figures::every(n as u64, watched)
            ),
            (false, true) => format!(
                "{name} is in a restart loop: systemd restarts it {}",
                figures::every(n as u64, watched)
            ),
            (false, false) => format!(
                "{name} is in a slow restart loop: {}, none during the watch",
                figures::plural(self.total as u64, "restart")
            ),
        };
        let goes_on = n > 0.0;
        let mut evidence = self.evidence(watched);
        let end = End::last(stops);
        evidence.extend(end.as_ref().map(End::evidence));
        evidence.extend(last_lines::evidence(case, self.unit));
        let window = figures::time(watched);
        let figure = match (self.is_only_triggered(), n > 0.0) {
            (true, _) => format!("{} in {window}", figures::plural(n as u64, "start")),
            (false, true) => format!("{} in {window}", figures::plural(n as u64, "restart")),
            (false, false) => {
                let total = figures::plural(self.total as u64, "restart");
                format!("{total}, none in {window}")
            }
        };
        let how = end.as_ref().and_then(End::how);
        let how = how.or_else(|| last_lines::end(case, self.unit));
        Finding {
            code: CODE,
            subject: self.unit.clone(),
            severity: Severity::Warning,
            confidence: match goes_on {
                true => Confidence::CERTAIN,
                false => Confidence::LIKELY,
            },
            title,
            figure: how.map_or(figure.clone(), |how| format!("{figure}, {how}")),
            since: None,
            evidence,
            remedies: remedies(name, &self.triggers()),
            touched: vec![self.unit.clone()],
            episodes: self.episodes(),
        }
    }

    fn evidence(&self, watched: Duration) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let watched = figures::time(watched);
        if self.total > 0.0 {
            let total = figures::count(self.total as u64);
            let text = format!(
                "NRestarts is {total}, at least {:.1}/h since boot; +{} in {watched}",
                self.per_hour,
                figures::count(self.grown as u64)
            );
            evidence.push(Evidence::speaks_for("units: NRestarts", text).value(self.total));
        }
        if self.restarted > 0.0 {
            let text = format!(
                "{} in {watched}",
                figures::plural(self.restarted as u64, "restart")
            );
            evidence.push(Evidence::speaks_for("units: bus", text).value(self.restarted));
        }
        if self.is_waiting {
            let text = "it was waiting for its next restart when the watch began";
            evidence.push(Evidence::speaks_for("units: SubState", text));
        }
        if self.in_window() == 0.0 && self.total > 0.0 {
            let text = format!("no restart in the {watched} of the watch");
            evidence.push(Evidence::against("units: bus", text));
        }
        if !self.triggered.is_empty() {
            let by = self.triggers().join(" ");
            let n = self.triggered.len();
            let starts = figures::plural(n as u64, "start");
            let text = format!("{starts} in {watched} by {by}, not by Restart=");
            evidence.push(Evidence::speaks_for("units: bus", text).value(n as f64));
        }
        evidence
    }

    fn episodes(&self) -> Vec<Episode> {
        let (Some(first), Some(last)) = (self.times.first(), self.times.last()) else {
            return Vec::new();
        };
        vec![Episode {
            from: *first,
            to: *last,
            touched: vec![self.unit.clone()],
        }]
    }
}

/// The last end of a run of which it is known how it came.
struct End<'a> {
    at: Moment,
    says: &'a UnitStopped,
}

impl<'a> End<'a> {
    fn last(stops: &[Event<'a, UnitStopped>]) -> Option<Self> {
        let is_told = |stop: &&Event<'_, UnitStopped>| stop.says.exit_status.is_some();
        let last = stops.iter().rev().find(is_told).or(stops.last())?;
        Some(Self {
            at: last.at,
            says: last.says,
        })
    }

    /// Its exit status, or the signal that ended it.
    fn how(&self) -> Option<String> {
        let says = self.says;
        last_lines::how(says.exit_code.as_deref(), says.exit_status.as_deref())
    }

    fn evidence(&self) -> Evidence {
        let says = self.says;
        let lived = says.lifetime_ns.map_or(String::new(), |ns| {
            format!(" after {}", figures::time(Duration::from_nanos(ns)))
        });
        // systemd reports a success where a status counts as one, or once the next run began:
        // of an end with another status that says nothing.
        let is_clean = says.exit_status.as_deref() == Some("0");
        let result = says
            .result
            .as_deref()
            .filter(|result| *result != "unseen" && (*result != "success" || is_clean));
        let result = result.map(|result| format!("result {result}"));
        let told: Vec<String> = self.how().into_iter().chain(result).collect();
        let text = match told.is_empty() {
            true => format!("its last run ended{lived}; exit status unknown"),
            false => format!("its last run ended{lived}: {}", told.join(", ")),
        };
        Evidence::speaks_for("units: bus", text).at(self.at)
    }
}

fn remedies(unit: &str, triggers: &[&str]) -> Vec<Remedy> {
    vec![
        Remedy::command(
            RemedyKind::Stop,
            "Stop the unit",
            unit_name::stop(unit, triggers),
        ),
        Remedy::command(RemedyKind::Look, "Read why it exits", journal(unit)),
        Remedy::command(
            RemedyKind::Prevent,
            "Disable the unit, here and in the image",
            unit_name::disable(unit, triggers),
        ),
    ]
}

#[cfg(test)]
mod tests;
