//! One unit: its state, and the run that is under way.

use sexton_model::fact::unit::{StartedBy, UnitSeen, UnitStarted, UnitStopped};
use sexton_model::subject::Subject;
use sexton_model::text::escape;
use sexton_systemd::bus::Value;

use super::settings;
use super::{Happening, Note, Values};

const NS_PER_US: u64 = 1_000;

/// When something began and ended, on `CLOCK_MONOTONIC`; zero where systemd has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::units) struct Span {
    began_ns: u64,
    ended_ns: u64,
}

/// One unit.
#[derive(Debug)]
pub(in crate::units) struct Entry {
    pub(super) subject: Subject,
    /// Whether systemd holds it in memory.
    pub(super) is_held: bool,
    pub(super) load: String,
    pub(super) active: String,
    pub(super) sub: String,
    invocation: Vec<u8>,
    /// `NRestarts`, and what it was when a start was last counted.
    restarts: Option<u64>,
    restarts_counted: u64,
    /// The main process of a service.
    process: Span,
    /// The unit, from leaving to entering the inactive state.
    run: Span,
    /// The last change of its state.
    state_ns: u64,
    /// The last end of a process or a run.
    last_end_ns: u64,
    /// When the run under way began.
    started_ns: u64,
    is_running: bool,
    main_pid: u64,
    result: String,
    exit_code: u64,
    exit_status: Option<String>,
    /// A failure that is not told yet, and whether it was asked for.
    failure: Option<(Note, bool)>,
    settings: Option<UnitSeen>,
    is_looked_at: bool,
}

impl Entry {
    pub(super) fn new(subject: Subject) -> Self {
        Self {
            subject,
            is_held: false,
            load: String::new(),
            active: String::new(),
            sub: String::new(),
            invocation: Vec::new(),
            restarts: None,
            restarts_counted: 0,
            process: Span::default(),
            run: Span::default(),
            state_ns: 0,
            last_end_ns: 0,
            started_ns: 0,
            is_running: false,
            main_pid: 0,
            result: String::new(),
            exit_code: 0,
            exit_status: None,
            failure: None,
            settings: None,
            is_looked_at: false,
        }
    }

    pub(super) fn is_looked_at(&self) -> bool {
        self.is_looked_at
    }

    pub(super) fn look_again(&mut self) {
        self.is_looked_at = false;
    }

    /// Takes properties of its type of unit.
    pub(super) fn take_kind(&mut self, values: &Values) -> Vec<Note> {
        set_number(values, "MainPID", &mut self.main_pid);
        set_text(values, "Result", &mut self.result);
        set_number(values, "ExecMainCode", &mut self.exit_code);
        set_moment(
            values,
            "ExecMainStartTimestampMonotonic",
            &mut self.process.began_ns,
        );
        set_moment(
            values,
            "ExecMainExitTimestampMonotonic",
            &mut self.process.ended_ns,
        );
        if let Some(status) = values.get("ExecMainStatus") {
            self.exit_status = status.shown();
        }
        self.take_restarts(values).into_iter().collect()
    }

    fn take_restarts(&mut self, values: &Values) -> Option<Note> {
        let n = values.get("NRestarts").and_then(Value::number)?;
        let before = self.restarts.replace(n);
        match before {
            // The first look is where counting begins.
            None => self.restarts_counted = n,
            // A manual start, reset-failed or a reload: it begins anew.
            Some(before) if n < before => self.restarts_counted = 0,
            Some(_) => {}
        }
        let is_news = before.map_or(n > 0, |before| before != n);
        is_news.then(|| Note::Restarts {
            unit: self.subject.clone(),
            n,
        })
    }

    /// Takes general properties, and says what all that was taken means.
    pub(super) fn take_unit(&mut self, values: &Values, since_ns: u64) -> Vec<Note> {
        let was_failed = self.active == "failed";
        let is_new = self.invocation.is_empty();
        set_text(values, "LoadState", &mut self.load);
        set_text(values, "ActiveState", &mut self.active);
        set_text(values, "SubState", &mut self.sub);
        set_moment(
            values,
            "InactiveExitTimestampMonotonic",
            &mut self.run.began_ns,
        );
        set_moment(
            values,
            "InactiveEnterTimestampMonotonic",
            &mut self.run.ended_ns,
        );
        set_moment(values, "StateChangeTimestampMonotonic", &mut self.state_ns);
        let ended_ns = self.process.ended_ns.max(self.run.ended_ns);
        let has_just_failed = self.active == "failed" && !was_failed;
        // systemd tells of a new invocation once before the unit leaves the state it was
        // in. A unit that is down has had its new run only if something ended since.
        let has_run = self.is_up() || ended_ns > self.last_end_ns || has_just_failed;
        self.last_end_ns = ended_ns;
        let mut notes = Vec::new();
        // What ended is the run that is known; a new one, if it is told already, comes again.
        let was_running = self.is_running;
        if has_run && (self.is_up() || !was_running) && self.takes_invocation(values) {
            // Of a unit that is seen for the first time, only its times tell whether
            // this run began before we looked.
            let began_ns = self.began_ns();
            if !is_new || began_ns >= since_ns {
                self.start(began_ns, &mut notes);
            }
            self.started_ns = began_ns;
            self.is_running = true;
            self.restarts_counted = self.restarts.unwrap_or(0);
        }
        if self.is_running && !self.is_up() {
            self.is_running = false;
            // A run that had ended before we looked is no news.
            if !is_new || self.ended_ns() >= since_ns {
                notes.push(self.stopped());
            }
        }
        if self.active != "failed" {
            self.failure = None;
        } else if has_just_failed {
            let at = Some(self.ended_ns()).filter(|ns| *ns > 0);
            let failed = self.event(at, Happening::Failed(self.outcome()));
            self.failure = Some((failed, false));
        }
        notes
    }

    /// The failure, when it has been asked for once before.
    pub(super) fn settle_failure(&mut self) -> Option<Note> {
        match self.failure.take()? {
            (failed, true) => Some(failed),
            (failed, false) => {
                self.failure = Some((failed, true));
                None
            }
        }
    }

    fn takes_invocation(&mut self, values: &Values) -> bool {
        match values.get("InvocationID") {
            Some(Value::Bytes(id)) if id.iter().any(|&b| b != 0) && *id != self.invocation => {
                self.invocation.clone_from(id);
                true
            }
            _ => false,
        }
    }

    fn start(&mut self, began_ns: u64, notes: &mut Vec<Note>) {
        let at = Some(began_ns).filter(|ns| *ns > 0);
        if self.is_running {
            let unseen = UnitStopped {
                result: Some("unseen".to_owned()),
                ..UnitStopped::default()
            };
            notes.push(self.event(at, Happening::Stopped(unseen)));
        }
        let restarts = self.restarts.unwrap_or(0);
        let grown = restarts.saturating_sub(self.restarts_counted);
        let n = grown.max(1);
        let by = match grown {
            0 => StartedBy::Start,
            _ => StartedBy::Restart,
        };
        let settings = self.settings.as_ref();
        let started = UnitStarted {
            by: Some(by),
            n: Some(n),
            invocation: Value::Bytes(self.invocation.clone()).shown(),
            main_pid: self.main_pid(),
            triggered_by: settings.and_then(|settings| settings.triggered_by.clone()),
        };
        notes.push(self.event(at, Happening::Started(started)));
        notes.push(Note::Starts {
            unit: self.subject.clone(),
            n,
        });
    }

    /// A unit that waits for its next restart is `activating`, yet nothing of it runs.
    fn is_up(&self) -> bool {
        !matches!(self.active.as_str(), "inactive" | "failed")
            && !self.sub.starts_with("auto-restart")
    }

    /// When the newest run began. Where a process was started, that is the start: a unit
    /// that is restarted does not enter the inactive state. Before there is a process
    /// (`ExecStartPre`) only the last change of state tells.
    fn began_ns(&self) -> u64 {
        let began_ns = self.process.began_ns.max(self.run.began_ns);
        if began_ns > self.started_ns {
            began_ns
        } else {
            self.state_ns.max(began_ns)
        }
    }

    fn ended_ns(&self) -> u64 {
        if self.process.ended_ns >= self.process.began_ns && self.process.ended_ns > 0 {
            self.process.ended_ns
        } else {
            self.run.ended_ns
        }
    }

    fn stopped(&self) -> Note {
        let (began, ended) = (self.started_ns, self.ended_ns());
        let stopped = UnitStopped {
            lifetime_ns: ended.checked_sub(began).filter(|_| began > 0),
            ..self.outcome()
        };
        let at = Some(ended).filter(|ns| *ns > 0);
        self.event(at, Happening::Stopped(stopped))
    }

    /// How it ended. systemd sets the result back when the next run begins, and its signals
    /// tell what is so when they are sent: a success beside another status says nothing.
    fn outcome(&self) -> UnitStopped {
        let is_doubtful = self.result == "success" && self.has_exited_otherwise();
        let code = match self.exit_code {
            1 => Some("exited"),
            2 => Some("killed"),
            3 => Some("dumped"),
            _ => None,
        };
        UnitStopped {
            result: said(&self.result).filter(|_| !is_doubtful),
            exit_code: code.map(str::to_owned),
            exit_status: self.exit_status.clone().filter(|_| code.is_some()),
            lifetime_ns: None,
        }
    }

    fn has_exited_otherwise(&self) -> bool {
        self.exit_code == 1 && self.exit_status.as_deref() != Some("0")
    }

    /// Takes what the unit is set to do.
    pub(super) fn take_settings(&mut self, kind: &Values, unit: &Values) -> Option<Note> {
        self.is_looked_at = true;
        let now = settings::settings(kind, unit);
        let what = match self.settings.replace(now.clone()) {
            None => Happening::Seen(self.with_state(now)),
            Some(before) if before == now => return None,
            Some(before) => Happening::Changed(UnitSeen {
                was: settings::changes(&before, &now),
                ..self.with_state(now)
            }),
        };
        Some(self.event(None, what))
    }

    /// That it was seen, of a unit whose settings are not looked at.
    pub(super) fn seen(&self) -> Note {
        let seen = self.with_state(UnitSeen::default());
        self.event(None, Happening::Seen(seen))
    }

    /// Adds the state it is in, since when, and what came of its last run.
    fn with_state(&self, settings: UnitSeen) -> UnitSeen {
        UnitSeen {
            load: said(&self.load),
            active: said(&self.active),
            sub: said(&self.sub),
            result: said(&self.result),
            main_pid: self.main_pid(),
            state_monotonic_ns: Some(self.state_ns).filter(|ns| *ns > 0),
            ..settings
        }
    }

    fn main_pid(&self) -> Option<u64> {
        Some(self.main_pid).filter(|pid| *pid > 0)
    }

    fn event(&self, at_ns: Option<u64>, what: Happening) -> Note {
        Note::Event {
            at_monotonic_ns: at_ns,
            unit: self.subject.clone(),
            what: Box::new(what),
        }
    }
}

/// A text, escaped, unless there is none.
fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| escape(text.as_bytes()))
}

fn set_number(values: &Values, name: &str, place: &mut u64) {
    if let Some(number) = values.get(name).and_then(Value::number) {
        *place = number;
    }
}

/// systemd tells moments in microseconds.
fn set_moment(values: &Values, name: &str, place: &mut u64) {
    if let Some(us) = values.get(name).and_then(Value::number) {
        *place = us.saturating_mul(NS_PER_US);
    }
}

fn set_text(values: &Values, name: &str, place: &mut String) {
    if let Some(Value::Text(text)) = values.get(name) {
        place.clone_from(text);
    }
}
