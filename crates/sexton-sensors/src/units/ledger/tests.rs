//! Signals as systemd 252 sends them, and what they come to.

use sexton_model::fact::unit::Setting;
use sexton_model::moment::Moment;
use sexton_model::payload::Fields;
use sexton_model::record::{Body, Sink};

use super::*;

const SERVICE: &str = "org.freedesktop.systemd1.Service";
const SINCE_NS: u64 = 1_000_000_000;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// The name of the event, and what it says.
fn event(unit: &Subject, what: Happening) -> (&'static str, Fields) {
    let mut out = Sink::new("units", Moment::default());
    what.tell(Moment::default(), unit, &mut out);
    match out.into_records().remove(0).body {
        Body::Event { fact, payload } => (fact.name, payload.fields()),
        other => panic!("an event, not {other:?}"),
    }
}

/// A service and the signals about it. Moments are in microseconds, as on the bus.
struct Story {
    ledger: Ledger,
    told: Vec<String>,
}

impl Story {
    fn new() -> Self {
        Self {
            ledger: Ledger::new(SINCE_NS, None),
            told: Vec::new(),
        }
    }

    fn tell(&mut self, notes: Vec<Note>) {
        for note in notes {
            self.told.push(match note {
                Note::Event { unit, what, .. } => {
                    let (name, fields) = event(&unit, *what);
                    let shown = ["by", "n", "result", "exit_status", "lifetime_ns"];
                    let kept = fields.iter().filter(|(key, _)| shown.contains(&&**key));
                    let kept: Vec<String> = kept.map(|(_, value)| value.to_string()).collect();
                    format!("{name} {}", kept.join(" "))
                }
                Note::Starts { n, .. } => format!("+{n}"),
                Note::Restarts { n, .. } => format!("NRestarts {n}"),
            });
        }
    }

    fn service(&mut self, restarts: u64, began_us: u64, ended_us: u64, status: i64) -> &mut Self {
        let result = if status == 0 { "success" } else { "exit-code" };
        let values = Values::from([
            ("NRestarts".into(), Value::Number(restarts)),
            ("Result".into(), text(result)),
            (
                "ExecMainCode".into(),
                Value::Number(u64::from(ended_us > 0)),
            ),
            (
                "ExecMainStatus".into(),
                Value::Number(status.unsigned_abs()),
            ),
            (
                "ExecMainStartTimestampMonotonic".into(),
                Value::Number(began_us),
            ),
            (
                "ExecMainExitTimestampMonotonic".into(),
                Value::Number(ended_us),
            ),
        ]);
        let notes = self.ledger.changed("a.service", SERVICE, &values);
        self.tell(notes);
        self
    }

    fn unit(&mut self, invocation: u8, active: &str, sub: &str) -> &mut Self {
        let values = Values::from([
            ("InvocationID".into(), Value::Bytes(vec![invocation; 16])),
            ("ActiveState".into(), text(active)),
            ("SubState".into(), text(sub)),
        ]);
        let notes = self.ledger.changed("a.service", UNIT, &values);
        self.tell(notes);
        self
    }

    fn check(&mut self, expected: &[&str]) -> &mut Self {
        assert_eq!(std::mem::take(&mut self.told), expected);
        self
    }
}

#[test]
fn a_restart_is_a_start_once() {
    let mut story = Story::new();
    // It ran before we looked.
    story
        .service(4, 500, 0, 0)
        .unit(1, "active", "running")
        .check(&["NRestarts 4"]);
    story
        .service(4, 500, 2_000_000, 3)
        .unit(1, "failed", "failed")
        .unit(1, "activating", "auto-restart")
        .check(&["unit_stopped exit-code 3 1999500000"]);
    // The new invocation is told before the unit moves.
    story
        .service(5, 500, 2_000_000, 3)
        .unit(2, "activating", "auto-restart")
        .service(5, 3_000_000, 0, 0)
        .unit(2, "active", "running")
        .unit(2, "active", "running")
        .check(&["NRestarts 5", "unit_started restart 1", "+1"]);
    let notes = [
        story.ledger.settle_failures(),
        story.ledger.settle_failures(),
    ]
    .concat();
    assert_eq!(notes, [], "it was restarted, so it has not failed");
}

#[test]
fn starts_by_hand_count_though_systemd_counts_none() {
    let mut story = Story::new();
    for run in 1..=3u8 {
        let began = 2_000_000 * u64::from(run);
        // systemd forgets the unit after each run: it begins with nothing.
        story.service(0, 0, 0, 0).unit(0, "inactive", "dead");
        story.unit(run, "inactive", "dead").check(&[]);
        story
            .service(0, began, 0, 0)
            .unit(run, "activating", "start")
            .check(&["unit_started start 1", "+1"]);
        story
            .service(0, began, began + 7, 0)
            .unit(run, "inactive", "dead")
            .check(&["unit_stopped success 0 7000"]);
        story.ledger.removed("a.service");
    }
    assert_eq!(story.ledger.counts(), (0, 0));
}

#[test]
fn an_end_that_is_told_with_the_next_invocation_is_of_the_last() {
    let mut story = Story::new();
    story
        .service(0, 2_000_000, 0, 0)
        .unit(1, "active", "running");
    story.check(&["unit_started start 1", "+1"]);
    story
        .service(1, 2_000_000, 2_000_009, 0)
        .unit(2, "activating", "auto-restart")
        .check(&["NRestarts 1", "unit_stopped success 0 9000"]);
    story
        .service(1, 3_000_000, 0, 0)
        .unit(2, "active", "running")
        .check(&["unit_started restart 1", "+1"]);
}

#[test]
fn restarts_that_went_by_unseen_are_counted() {
    let mut story = Story::new();
    story
        .service(2, 2_000_000, 0, 0)
        .unit(1, "active", "running");
    story.check(&["NRestarts 2", "unit_started start 1", "+1"]);
    story
        .service(7, 3_000_000, 0, 0)
        .unit(2, "active", "running")
        .check(&[
            "NRestarts 7",
            "unit_stopped unseen",
            "unit_started restart 5",
            "+5",
        ]);
}

#[test]
fn a_count_that_falls_begins_anew() {
    let mut story = Story::new();
    story.service(9, 500, 0, 0).unit(1, "active", "running");
    // reset-failed: no start.
    story.service(0, 500, 0, 0).unit(1, "active", "running");
    story.check(&["NRestarts 9", "NRestarts 0"]);
    story
        .service(2, 3_000_000, 0, 0)
        .unit(2, "active", "running")
        .check(&[
            "NRestarts 2",
            "unit_stopped unseen",
            "unit_started restart 2",
            "+2",
        ]);
}

#[test]
fn a_failure_is_told_when_it_lasts() {
    let mut story = Story::new();
    story
        .service(0, 2_000_000, 0, 0)
        .unit(1, "active", "running");
    story
        .service(0, 2_000_000, 2_500_000, 7)
        .unit(1, "failed", "failed");
    story.told.clear();
    assert_eq!(story.ledger.settle_failures(), []);
    let notes = story.ledger.settle_failures();
    story.tell(notes);
    story.check(&["unit_failed exit-code 7"]);
    assert_eq!(story.ledger.settle_failures(), []);
    assert_eq!(story.ledger.counts(), (1, 1));
}

#[test]
fn a_listing_shows_what_signals_missed() {
    let row = |name: &str, active: &str| Row {
        name: name.into(),
        load: "loaded".into(),
        active: active.into(),
        sub: String::new(),
    };
    let mut ledger = Ledger::new(SINCE_NS, None);
    let mut notes = Vec::new();
    let rows = [row("a.mount", "active"), row("b.mount", "active")];
    assert_eq!(ledger.list(&rows, &mut notes), [""; 0]);
    let rows = [row("a.mount", "active"), row("b.mount", "failed")];
    assert_eq!(ledger.list(&rows, &mut notes), ["b.mount"]);
    assert!(!ledger.is("b.mount", "failed"));
    assert_eq!(ledger.believe(&rows[1]), []);
    assert!(ledger.is("b.mount", "failed"));
    assert_eq!(ledger.counts(), (2, 1));
    assert_eq!(ledger.list(&rows[..1], &mut notes), [""; 0]);
    assert_eq!(ledger.counts(), (1, 0));
    assert_eq!(notes, []);
    // One that failed before we looked is told at once: nothing else will.
    ledger.list(&[row("c.mount", "failed")], &mut notes);
    let [Note::Event { unit, what, .. }] = &notes[..] else {
        panic!("one event, not {notes:?}")
    };
    assert_eq!(&*unit.name, "c.mount");
    let Happening::Seen(seen) = &**what else {
        panic!("{what:?}")
    };
    assert_eq!(seen.active.as_deref(), Some("failed"));
}

#[test]
fn settings_are_told_once_and_when_they_change() {
    let mut ledger = Ledger::new(SINCE_NS, None);
    assert!(ledger.loaded("a.timer"));
    let mut look = |state: &str| {
        let unit = Values::from([("UnitFileState".into(), text(state))]);
        let notes = ledger.looked("a.timer", &Values::new(), &unit);
        let what = notes.into_iter().map(|note| match note {
            Note::Event { what, .. } => *what,
            other => panic!("{other:?}"),
        });
        what.collect::<Vec<_>>()
    };
    assert!(matches!(look("disabled")[..], [Happening::Seen(_)]));
    assert_eq!(look("disabled"), []);
    let changed = look("enabled");
    let [Happening::Changed(changed)] = &changed[..] else {
        panic!("{changed:?}")
    };
    let was = Setting {
        name: "enabled".into(),
        value: "disabled".into(),
    };
    assert_eq!(changed.enabled.as_deref(), Some("enabled"));
    assert_eq!(changed.was, [was]);
    assert!(!ledger.loaded("a.timer"));
}

#[test]
fn a_start_that_another_unit_prevents_is_told() {
    let mut ledger = Ledger::new(SINCE_NS, None);
    assert_eq!(ledger.job_ended("a.service", "done"), None);
    assert!(ledger.job_ended("a.service", "dependency").is_some());
}

#[test]
fn a_unit_of_a_user_is_told_with_its_manager() {
    let mut ledger = Ledger::new(SINCE_NS, Some(1000));
    let note = ledger.job_ended("ssh.service", "dependency");
    let Some(Note::Event { unit, .. }) = note else {
        panic!("{note:?}");
    };
    assert_eq!(&*unit.name, "user@1000.service/ssh.service");
}
