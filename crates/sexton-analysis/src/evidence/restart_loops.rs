//! Whether systemd restarts a unit in a loop.

use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::unit::{self as fact, StartedBy, UnitStarted};
use sexton_model::moment::Moment;
use sexton_model::record::{Event, Record};
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::trend::growth;
use crate::rule::Threshold;

const HOUR: f64 = 3600.0;
/// A socket or path that starts a unit does its work; so many times as often as restarts it
/// must do so to be called a loop.
const TRIGGERED_TIMES: f64 = 3.0;

pub(crate) static LEAST_RESTARTS: Threshold = Threshold {
    rule: "UNIT001",
    name: "least_restarts",
    default: 2.0,
    range: (1.0, 1e6),
    unit: Measure::Count,
    why: "this number of automatic restarts in the window is a loop: one repairs a crash. The founding \
          unit, with Debian's RestartSec=10s, was restarted each 11 s: 2 or 3 times in half a \
          minute",
};

pub(crate) static LEAST_HISTORY: Threshold = Threshold {
    rule: "UNIT001",
    name: "least_history",
    default: 10.0,
    range: (1.0, 1e9),
    unit: Measure::Count,
    why: "this number of restarts (NRestarts) is a loop, if they also come often enough; \
          twice what its default start limit lets pass (DefaultStartLimitBurst=5)",
};

pub(crate) static LEAST_PER_HOUR: Threshold = Threshold {
    rule: "UNIT001",
    name: "least_per_hour",
    default: 1.0,
    range: (0.001, 1e6),
    unit: Measure::Count,
    why: "fewer restarts an hour are no loop. A run that appends to a log leaves 1.07 dying \
          cgroups (measured), so one an hour takes 39 days to the 1,000 of the founding \
          incident's gate, and that node was up for weeks",
};

/// Whether systemd itself tells of a loop of this unit.
pub(crate) fn is_loop(case: &Case<'_>, unit: &Subject) -> bool {
    let counts = case.by_subject(&fact::UNIT_RESTARTS).remove(unit);
    let starts = case.events(&fact::UNIT_STARTED);
    let starts = starts.filter(|event| event.subject == unit).collect();
    Loop::of(case, unit, counts.unwrap_or_default(), starts).is_one(case)
}

/// How long sexton watched.
pub(crate) fn watched(case: &Case<'_>) -> Duration {
    case.window()
        .map_or(Duration::ZERO, |window| window.end().since(*window.start()))
}

/// The state in which a unit was first seen.
struct State {
    is_waiting: bool,
    is_running: bool,
    is_stopped: bool,
    since: Option<Moment>,
}

impl State {
    fn of(case: &Case<'_>, unit: &Subject) -> Option<Self> {
        let mut seen = case.events(&fact::UNIT_SEEN);
        let says = seen.rfind(|event| event.subject == unit)?.says;
        Some(Self {
            is_waiting: says.sub.as_deref() == Some("auto-restart"),
            is_running: says.sub.as_deref() == Some("running"),
            is_stopped: says.sub.as_deref() == Some("dead"),
            since: says.state_monotonic_ns.map(Moment::from_ns),
        })
    }

    /// A unit that runs for three times as long as its restarts were apart has recovered. One
    /// that was stopped keeps its count (`NRestarts`) and is not restarted; one in a loop waits
    /// for its next restart instead.
    fn is_over(&self, case: &Case<'_>, per_hour: f64) -> bool {
        let apart = Duration::from_secs_f64(HOUR / per_hour.max(1e-3));
        let runs = self.since.map(|since| case.now().since(since));
        self.is_stopped || self.is_running && runs.is_some_and(|runs| runs > apart * 3)
    }
}

/// What is known of the restarts of a unit.
#[derive(Debug)]
pub(crate) struct Loop<'a> {
    pub(crate) unit: &'a Subject,
    /// systemd's count at the end, restarts in the window by it, and by starts seen.
    pub(crate) total: f64,
    pub(crate) grown: f64,
    pub(crate) restarted: f64,
    /// Starts that a socket or path caused, and which.
    pub(crate) triggered: Vec<Event<'a, UnitStarted>>,
    pub(crate) times: Vec<Moment>,
    /// Restarts an hour since boot, at least, and in the window.
    pub(crate) per_hour: f64,
    pub(crate) per_hour_now: f64,
    /// It waited for its next restart when it was first seen.
    pub(crate) is_waiting: bool,
    /// It runs for longer than its restarts were apart, or was stopped.
    pub(crate) is_over: bool,
}

impl<'a> Loop<'a> {
    pub(crate) fn of(
        case: &Case<'_>,
        unit: &'a Subject,
        counts: Vec<&'a Record>,
        starts: Vec<Event<'a, UnitStarted>>,
    ) -> Self {
        let counted = counts.iter().filter_map(|record| record.value());
        let n = |start: &Event<'a, UnitStarted>| start.says.n.unwrap_or(1) as f64;
        let is_restart =
            |start: &&Event<'a, UnitStarted>| start.says.by == Some(StartedBy::Restart);
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
                .filter(|start| !is_restart(start))
                .filter(|start| {
                    let by = start.says.triggered_by.as_ref();
                    by.is_some_and(|by| !by.contains(".timer"))
                })
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
    pub(crate) fn in_window(&self) -> f64 {
        self.grown.max(self.restarted)
    }

    pub(crate) fn is_one(&self, case: &Case<'_>) -> bool {
        let least = case.limit(&LEAST_PER_HOUR);
        let is_now = self.in_window() >= case.limit(&LEAST_RESTARTS) && self.per_hour_now >= least;
        let is_often = self.per_hour >= least && !self.is_over || self.is_waiting;
        let was = self.total >= case.limit(&LEAST_HISTORY) && is_often;
        let n_triggered = self.triggered.len() as f64;
        let is_triggered = n_triggered >= TRIGGERED_TIMES * case.limit(&LEAST_RESTARTS)
            && n_triggered / (watched(case).as_secs_f64() / HOUR) >= least;
        is_now || was || is_triggered
    }

    pub(crate) fn is_only_triggered(&self) -> bool {
        self.in_window() == 0.0 && self.total == 0.0
    }

    /// The sockets and paths that start it, as systemd lists them.
    pub(crate) fn triggers(&self) -> Vec<&'a str> {
        let first = self.triggered.first();
        let by = first.and_then(|start| start.says.triggered_by.as_deref());
        by.unwrap_or_default().split_whitespace().collect()
    }
}
