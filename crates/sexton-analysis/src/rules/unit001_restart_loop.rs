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

const CODE: &str = "UNIT001";
const HOUR: f64 = 3600.0;

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
    default: 3.0,
    range: (1.0, 1e6),
    unit: Unit::Count,
    why: "so many restarts in the window are a loop: an operator makes one or two",
};

static LEAST_HISTORY: Threshold = Threshold {
    rule: CODE,
    name: "least_history",
    default: 10.0,
    range: (1.0, 1e9),
    unit: Unit::Count,
    why: "so many restarts that systemd has counted before the window are a loop, if they \
          also come often enough; twice what the default start limit (5 in 10 s) lets pass",
};

static LEAST_PER_HOUR: Threshold = Threshold {
    rule: CODE,
    name: "least_per_hour",
    default: 1.0,
    range: (0.001, 1e6),
    unit: Unit::Count,
    why: "restarts an hour since boot, at least, for those before the window to count: one an \
          hour is a cgroup an hour, 9,000 a year; seldom enough that nobody looks",
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
    /// Restarts an hour since boot, at least.
    per_hour: f64,
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
        Self {
            unit,
            total,
            grown: growth(counted),
            restarted: starts.iter().filter(is_restart).map(n).sum(),
            // A timer starts what it should.
            triggered: starts
                .iter()
                .filter(|record| !is_restart(record))
                .filter(|record| trigger(record).is_some_and(|by| !by.contains(".timer")))
                .copied()
                .collect(),
            times: starts.iter().map(|record| record.at).collect(),
            per_hour: total / (uptime / HOUR).max(1.0 / 60.0),
        }
    }

    /// Restarts in the window, by whichever count saw more.
    fn in_window(&self) -> f64 {
        self.grown.max(self.restarted)
    }

    fn is_one(&self, case: &Case<'_>) -> bool {
        let is_now = self.in_window() >= case.limit(&LEAST_RESTARTS);
        let was = self.total >= case.limit(&LEAST_HISTORY)
            && self.per_hour >= case.limit(&LEAST_PER_HOUR);
        let is_triggered = self.triggered.len() as f64 >= 2.0 * case.limit(&LEAST_RESTARTS);
        is_now || was || is_triggered
    }

    fn is_only_triggered(&self) -> bool {
        self.in_window() == 0.0 && self.total == 0.0
    }

    fn finding(&self, case: &Case<'_>, stops: &[&Record]) -> Finding {
        let name = &self.unit.name;
        let watched = case
            .window()
            .map_or(Duration::ZERO, |w| w.end().since(*w.start()));
        let n = self.in_window().max(self.triggered.len() as f64);
        let title = match (self.is_only_triggered(), n > 0.0) {
            (true, _) => format!("{name} is started again and again by its socket or path"),
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
            remedies: remedies(name),
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
        if self.in_window() == 0.0 && self.total > 0.0 {
            let text = format!("no restart fell into the {watched} of the watch");
            evidence.push(Evidence::against("units: bus", text));
        }
        if let Some(first) = self.triggered.first() {
            let by = first.detail("triggered_by").unwrap_or_default();
            let n = self.triggered.len();
            let text = format!("{n} starts in {watched} came by {by}, not by Restart=");
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

/// How its runs ended.
fn last_end(stops: &[&Record]) -> Option<Evidence> {
    let last = stops.last()?;
    let result = last.detail("result").unwrap_or("unknown");
    let status = match (last.detail("exit_code"), last.detail("exit_status")) {
        (Some(how), Some(status)) => format!(", {how} {status}"),
        _ => String::new(),
    };
    let lifetime = last.detail("lifetime_ns").and_then(|ns| ns.parse().ok());
    let lived = lifetime.map_or(String::new(), |ns| {
        format!(" after {}", figures::time(Duration::from_nanos(ns)))
    });
    let text = format!("its last run ended{lived} with the result {result}{status}");
    Some(Evidence::speaks_for("units: bus", text).at(last.at))
}

fn remedies(unit: &str) -> Vec<Remedy> {
    vec![
        Remedy::command(
            RemedyKind::Stop,
            "end the loop now",
            format!("sudo systemctl stop {unit}"),
        ),
        Remedy::command(
            RemedyKind::Look,
            "see why it ends",
            format!("journalctl -u {unit} -n 50"),
        ),
        Remedy::command(
            RemedyKind::Prevent,
            "keep it from starting here, on this node and in the image",
            format!("sudo systemctl disable --now {unit}"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use sexton_model::record::Sink;
    use sexton_model::subject::SubjectKind;

    use super::*;
    use crate::testing::{Watch, at};

    fn unit() -> Subject {
        Subject::new(SubjectKind::Unit, "loop.service")
    }

    fn started(out: &mut Sink, second: u64, by: &str, trigger: Option<&str>) {
        let mut details = vec![("by".into(), by.to_owned()), ("n".into(), "1".into())];
        details.extend(trigger.map(|name| ("triggered_by".into(), name.to_owned())));
        out.event(at(second), &unit(), &fact::UNIT_STARTED, details);
    }

    /// Counts at 10 s steps, restarts seen, up for so many hours.
    fn check(counts: &[f64], n_started: u64, hours: u64, expected: usize) {
        let from = hours * 3600;
        let mut watch = Watch::new(from, 30);
        for (i, count) in counts.iter().enumerate() {
            let mut out = Sink::new("units", at(from + 10 * i as u64));
            out.sample(&unit(), &fact::UNIT_RESTARTS, *count);
            watch.add(out);
        }
        let mut out = Sink::new("units", at(from));
        (0..n_started).for_each(|i| started(&mut out, from + i, "restart", None));
        watch.add(out);
        assert_eq!(watch.judge(&RULE).findings.len(), expected, "{counts:?}");
    }

    #[test]
    fn growth_is_a_loop_and_one_restart_is_none() {
        check(&[0.0, 3.0, 6.0], 0, 24, 1);
        check(&[], 4, 24, 1);
        check(&[1.0], 1, 24, 0);
    }

    #[test]
    fn history_counts() {
        check(&[5_000.0], 0, 240, 1);
        // Twelve in three hundred days are none.
        check(&[12.0], 0, 7_200, 0);
    }

    #[test]
    fn a_count_that_begins_anew_is_no_negative_growth() {
        check(&[9.0, 0.0, 1.0], 0, 2_400, 0);
        check(&[9.0, 0.0, 4.0], 0, 2_400, 1);
    }

    #[test]
    fn what_a_timer_starts_is_no_loop() {
        let story = |trigger: &str| {
            let mut watch = Watch::new(9_000, 30);
            let mut out = Sink::new("units", at(9_000));
            (0..8).for_each(|i| started(&mut out, 9_000 + i, "start", Some(trigger)));
            watch.add(out);
            watch.judge(&RULE).findings
        };
        assert!(story("tick.timer").is_empty());
        let by_socket = story("tick.socket");
        assert!(
            by_socket[0].title.contains("socket"),
            "{}",
            by_socket[0].title
        );
    }

    #[test]
    fn without_systemd_it_is_not_judged() {
        let findings = Watch::blind("units", "there is no systemd").judge(&RULE);
        assert_eq!(findings.not_judged[0].because, "there is no systemd");
    }
}
