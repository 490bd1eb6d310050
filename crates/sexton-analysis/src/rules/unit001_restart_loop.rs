//! UNIT001: a unit restarts in a loop
//!
//! Means: systemd starts the unit again and again because it ends. Each run has a fresh
//! cgroup and costs a start; loops slower than the start limit go on for ever.
//! Not this: a unit that a timer starts as it should; a unit that an operator restarted a
//! few times; a supervisor that restarts its own children (UNIT002).
//! By hand: `systemctl show -p NRestarts,Restart,RestartUSec UNIT`, twice; `journalctl -u UNIT`.
//! A manual start sets `NRestarts` back to 0.
//! Next: `systemctl status UNIT` for why it ends; UNIT005 and UNIT006 for what its settings
//! say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::Unit;
use sexton_model::fact::unit as fact;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::figures;
use crate::rule::{Findings, Rule, Threshold};
use crate::trend::growth;
use crate::unit_name::{self, journal};

const CODE: &str = "UNIT001";
const HOUR: f64 = 3600.0;

/// A socket or path that starts a unit does its work; so many times as often as restarts it
/// must do so to be called a loop.
const TRIGGERED_TIMES: f64 = 3.0;

pub(super) static RULE: Rule = Rule {
    code: CODE,
    title: "a unit restarts in a loop",
    needs: &["units"],
    uses: &[],
    is_essential: false,
    is_cause: true,
    thresholds: &[&LEAST_RESTARTS, &LEAST_HISTORY, &LEAST_PER_HOUR],
    source: include_str!("unit001_restart_loop.rs"),
    judge,
};

static LEAST_RESTARTS: Threshold = Threshold {
    rule: CODE,
    name: "least_restarts",
    default: 2.0,
    range: (1.0, 1e6),
    unit: Unit::Count,
    why: "so many automatic restarts in the window are a loop: one mends a crash. The founding \
          unit, with Debian's RestartSec=10s, was restarted each 11 s: 2 or 3 times in half a \
          minute",
};

static LEAST_HISTORY: Threshold = Threshold {
    rule: CODE,
    name: "least_history",
    default: 10.0,
    range: (1.0, 1e9),
    unit: Unit::Count,
    why: "so many restarts that systemd has counted are a loop, if they also come often enough; \
          twice what its default start limit lets pass (DefaultStartLimitBurst=5)",
};

static LEAST_PER_HOUR: Threshold = Threshold {
    rule: CODE,
    name: "least_per_hour",
    default: 1.0,
    range: (0.001, 1e6),
    unit: Unit::Count,
    why: "fewer restarts an hour are no loop. A run that appends to a log leaves 1.07 dying \
          cgroups (measured), so one an hour takes 39 days to the 1,000 of the founding \
          incident's gate, and that node was up for weeks",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let mut units: BTreeSet<&Subject> = BTreeSet::new();
    for fact in [&fact::UNIT_RESTARTS, &fact::UNIT_STARTED] {
        units.extend(case.of(fact).iter().map(|record| &record.subject));
    }
    let restarts = case.by_subject(&fact::UNIT_RESTARTS);
    let starts = case.by_subject(&fact::UNIT_STARTED);
    let stops = case.by_subject(&fact::UNIT_STOPPED);
    let of = |map: &BTreeMap<&Subject, Vec<_>>, unit| map.get(unit).cloned().unwrap_or_default();
    for unit in units {
        let loops = Loop::of(case, unit, of(&restarts, unit), of(&starts, unit));
        if loops.is_one(case) {
            out.found(loops.finding(case, &of(&stops, unit)));
        }
    }
}

/// Whether systemd itself tells of a loop of this unit.
pub(super) fn is_loop(case: &Case<'_>, unit: &Subject) -> bool {
    let of = |fact| case.by_subject(fact).remove(unit).unwrap_or_default();
    let counts = of(&fact::UNIT_RESTARTS);
    Loop::of(case, unit, counts, of(&fact::UNIT_STARTED)).is_one(case)
}

/// How long sexton watched.
fn watched(case: &Case<'_>) -> Duration {
    case.window()
        .map_or(Duration::ZERO, |window| window.end().since(*window.start()))
}

/// The state in which a unit was first seen.
struct State {
    is_waiting: bool,
    is_running: bool,
    since: Option<Moment>,
}

impl State {
    fn of(case: &Case<'_>, unit: &Subject) -> Option<Self> {
        let mut seen = case.of(&fact::UNIT_SEEN).iter();
        let record = seen.rfind(|record| record.subject == *unit)?;
        let since = record.detail("state_monotonic_ns");
        Some(Self {
            is_waiting: record.detail("sub") == Some("auto-restart"),
            is_running: record.detail("sub") == Some("running"),
            since: since.and_then(|ns| ns.parse().ok()).map(Moment::from_ns),
        })
    }

    /// A unit that runs for three times as long as its restarts were apart has recovered.
    fn is_over(&self, case: &Case<'_>, per_hour: f64) -> bool {
        let apart = Duration::from_secs_f64(HOUR / per_hour.max(1e-3));
        let runs = self.since.map(|since| case.now().since(since));
        self.is_running && runs.is_some_and(|runs| runs > apart * 3)
    }
}

/// What is known of the restarts of a unit.
struct Loop<'a> {
    unit: &'a Subject,
    /// systemd's count at the end, restarts in the window by it, and by starts seen.
    total: f64,
    grown: f64,
    restarted: f64,
    /// Starts that a socket or path caused, and which.
    triggered: Vec<&'a Record>,
    times: Vec<Moment>,
    /// Restarts an hour since boot, at least, and in the window.
    per_hour: f64,
    per_hour_now: f64,
    /// It waited for its next restart when it was first seen.
    is_waiting: bool,
    /// It runs for longer than its restarts were apart.
    is_over: bool,
}

impl<'a> Loop<'a> {
    fn of(
        case: &Case<'_>,
        unit: &'a Subject,
        counts: Vec<&'a Record>,
        starts: Vec<&'a Record>,
    ) -> Self {
        let counted = counts.iter().filter_map(|record| record.value());
        let n = |record: &&Record| {
            record
                .detail("n")
                .and_then(|n| n.parse().ok())
                .unwrap_or(1.0)
        };
        let is_restart = |record: &&&Record| record.detail("by") == Some("restart");
        let trigger = |record: &Record| record.detail("triggered_by").map(str::to_owned);
        let total = counted.clone().next_back().unwrap_or(0.0);
        let uptime = case.now().as_ns() as f64 / 1e9;
        let grown = growth(counted);
        let restarted = starts.iter().filter(is_restart).map(n).sum();
        let watched = watched(case).as_secs_f64();
        let in_window = grown.max(restarted);
        let per_hour = total / (uptime / HOUR).max(1.0 / 60.0);
        let seen = State::of(case, unit);
        Self {
            unit,
            total,
            grown,
            restarted,
            // A timer starts what it should.
            triggered: starts
                .iter()
                .filter(|record| !is_restart(record))
                .filter(|record| trigger(record).is_some_and(|by| !by.contains(".timer")))
                .copied()
                .collect(),
            times: starts.iter().map(|record| record.at).collect(),
            per_hour,
            per_hour_now: in_window / (watched / HOUR).max(1.0 / HOUR),
            is_waiting: seen.as_ref().is_some_and(|seen| seen.is_waiting),
            is_over: in_window == 0.0 && seen.is_some_and(|seen| seen.is_over(case, per_hour)),
        }
    }

    /// Restarts in the window, by whichever count saw more.
    fn in_window(&self) -> f64 {
        self.grown.max(self.restarted)
    }

    fn is_one(&self, case: &Case<'_>) -> bool {
        let least = case.limit(&LEAST_PER_HOUR);
        let is_now = self.in_window() >= case.limit(&LEAST_RESTARTS) && self.per_hour_now >= least;
        let is_often = self.per_hour >= least && !self.is_over || self.is_waiting;
        let was = self.total >= case.limit(&LEAST_HISTORY) && is_often;
        let n_triggered = self.triggered.len() as f64;
        let is_triggered = n_triggered >= TRIGGERED_TIMES * case.limit(&LEAST_RESTARTS)
            && n_triggered / (watched(case).as_secs_f64() / HOUR) >= least;
        is_now || was || is_triggered
    }

    fn is_only_triggered(&self) -> bool {
        self.in_window() == 0.0 && self.total == 0.0
    }

    fn finding(&self, case: &Case<'_>, stops: &[&Record]) -> Finding {
        let name = &self.unit.name;
        let watched = watched(case);
        let n = self.in_window().max(self.triggered.len() as f64);
        let title = match (self.is_only_triggered(), n > 0.0) {
            (true, _) => format!(
                "{name} is started again and again by {}",
                self.triggers().join(" ")
            ),
            (false, true) => format!(
                "{name} restarts in a loop: {n} times in {}",
                figures::time(watched)
            ),
            (false, false) => format!(
                "{name} restarts in a slow loop: {} restarts so far, none while sexton watched",
                figures::count(self.total as u64)
            ),
        };
        let goes_on = n > 0.0;
        let mut evidence = self.evidence(watched);
        evidence.extend(last_end(stops));
        Finding {
            code: CODE,
            subject: self.unit.clone(),
            severity: Severity::Warning,
            confidence: match goes_on {
                true => Confidence::CERTAIN,
                false => Confidence::LIKELY,
            },
            title,
            figure: match self.total > n {
                true => format!("{} restarts", figures::count(self.total as u64)),
                false => format!("{n} in {}", figures::time(watched)),
            },
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
                "NRestarts is {total}, {:.1} an hour since boot at least; it grew by {} in {watched}",
                self.per_hour, self.grown
            );
            evidence.push(Evidence::speaks_for("units: NRestarts", text).value(self.total));
        }
        if self.restarted > 0.0 {
            let text = format!(
                "{} restarts were seen on the bus in {watched}",
                self.restarted
            );
            evidence.push(Evidence::speaks_for("units: bus", text).value(self.restarted));
        }
        if self.is_waiting {
            let text = "it waited for its next restart when it was first seen";
            evidence.push(Evidence::speaks_for("units: SubState", text));
        }
        if self.in_window() == 0.0 && self.total > 0.0 {
            let text = format!("no restart fell into the {watched} of the watch");
            evidence.push(Evidence::against("units: bus", text));
        }
        if !self.triggered.is_empty() {
            let by = self.triggers().join(" ");
            let n = self.triggered.len();
            let text = format!("{n} starts in {watched} came by {by}, not by Restart=");
            evidence.push(Evidence::speaks_for("units: bus", text).value(n as f64));
        }
        evidence
    }

    /// The sockets and paths that start it, as systemd lists them.
    fn triggers(&self) -> Vec<&'a str> {
        let first = self.triggered.first();
        let by = first.and_then(|record| record.detail("triggered_by"));
        by.unwrap_or_default().split_whitespace().collect()
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

/// How its runs ended: the last of which that is known.
fn last_end(stops: &[&Record]) -> Option<Evidence> {
    let is_told = |stop: &&&Record| stop.detail("exit_status").is_some();
    let last = stops.iter().rev().find(is_told).or(stops.last())?;
    let lifetime = last.detail("lifetime_ns").and_then(|ns| ns.parse().ok());
    let lived = lifetime.map_or(String::new(), |ns| {
        format!(" after {}", figures::time(Duration::from_nanos(ns)))
    });
    let how = match (last.detail("exit_code"), last.detail("exit_status")) {
        (Some("exited"), Some(status)) => Some(format!("it exited with {status}")),
        (Some(how), Some(signal)) => Some(format!("it was {how} by signal {signal}")),
        _ => None,
    };
    // systemd tells of a success where a status counts as one, or once the next run began:
    // of an end with another status that says nothing.
    let is_clean = last.detail("exit_status") == Some("0");
    let result = last
        .detail("result")
        .filter(|result| *result != "unseen" && (*result != "success" || is_clean));
    let result = result.map(|result| format!("systemd's result is {result}"));
    let told: Vec<String> = how.into_iter().chain(result).collect();
    let text = match told.is_empty() {
        true => format!("its last run ended{lived}; how was not seen"),
        false => format!("its last run ended{lived}: {}", told.join(", ")),
    };
    Some(Evidence::speaks_for("units: bus", text).at(last.at))
}

fn remedies(unit: &str, triggers: &[&str]) -> Vec<Remedy> {
    vec![
        Remedy::command(
            RemedyKind::Stop,
            "end the loop now",
            unit_name::stop(unit, triggers),
        ),
        Remedy::command(RemedyKind::Look, "see why it ends", journal(unit)),
        Remedy::command(
            RemedyKind::Prevent,
            "keep it from starting here, on this node and in the image",
            unit_name::disable(unit, triggers),
        ),
    ]
}

#[cfg(test)]
mod tests;
