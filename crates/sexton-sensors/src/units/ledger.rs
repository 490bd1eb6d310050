//! What is known of each unit, and what its changes mean. Pure: no bus, no clock.
//!
//! A start is a new `InvocationID`, whoever caused it: a restart, a hand, a timer, a
//! socket. `NRestarts` counts only the first of these, is set back by the others, and
//! serves here to notice restarts that went by unseen.

mod entry;
mod happening;
mod settings;

use std::collections::HashMap;

use sexton_model::fact::unit::UnitStopped;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_systemd::bus::Value;
pub(super) use sexton_systemd::bus::{ListedUnit as Row, Properties as Values};

use entry::Entry;
pub(super) use happening::Happening;
pub(super) use settings::has_settings;

/// Units that are remembered. Beyond that, those that systemd forgot are forgotten.
const REMEMBERED: usize = 20_000;

/// The interface that all units have.
pub(super) const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// Something to be told.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    /// Something happened; `None` is now.
    Event {
        at_monotonic_ns: Option<u64>,
        unit: Subject,
        what: Box<Happening>,
    },
    /// So many starts.
    Starts { unit: Subject, n: u64 },
    /// systemd's own count.
    Restarts { unit: Subject, n: u64 },
}

/// All units.
#[derive(Debug)]
pub(super) struct Ledger {
    entries: HashMap<String, Entry>,
    /// Runs that began before this are not starts that were seen.
    since_ns: u64,
    /// What names begin with: a unit of a user may be named like one of the system's.
    prefix: String,
}

impl Ledger {
    /// An empty one that watches from this moment of `CLOCK_MONOTONIC` on. Units of a user's
    /// manager are told with it: `user@1000.service/loop.service`.
    pub(super) fn new(since_ns: u64, user: Option<u32>) -> Self {
        Self {
            entries: HashMap::new(),
            since_ns,
            prefix: user.map_or_else(String::new, |user| format!("user@{user}.service/")),
        }
    }

    /// Units that systemd holds, and those of them that have failed.
    pub(super) fn counts(&self) -> (u64, u64) {
        let held = self.entries.values().filter(|entry| entry.is_held);
        held.fold((0, 0), |(n, n_failed), entry| {
            (n + 1, n_failed + u64::from(entry.active == "failed"))
        })
    }

    /// Takes a full listing. Gives back the units whose state is not what the signals
    /// said so far: they are about to say it, or have been missed.
    pub(super) fn list(&mut self, rows: &[Row], notes: &mut Vec<Note>) -> Vec<String> {
        for entry in self.entries.values_mut() {
            entry.is_held = false;
        }
        let mut differ = Vec::new();
        for row in rows {
            let entry = self.entry(&row.name);
            entry.is_held = true;
            entry.load.clone_from(&row.load);
            if entry.active.is_empty() {
                entry.active.clone_from(&row.active);
                entry.sub.clone_from(&row.sub);
                // Others are looked at, and told then.
                if row.active == "failed" && has_settings(&row.name).is_none() {
                    notes.push(entry.seen());
                }
            } else if entry.active != row.active {
                differ.push(row.name.clone());
            }
        }
        differ
    }

    /// Takes the state that a listing tells, where signals have told another.
    pub(super) fn believe(&mut self, row: &Row) -> Vec<Note> {
        let state = [("ActiveState", &row.active), ("SubState", &row.sub)];
        let values = state.map(|(name, text)| (name.to_owned(), Value::Text(text.clone())));
        self.changed(&row.name, UNIT, &Values::from(values))
    }

    /// systemd has loaded a unit. Says whether its settings are unknown.
    pub(super) fn loaded(&mut self, name: &str) -> bool {
        let entry = self.entry(name);
        entry.is_held = true;
        !entry.is_looked_at()
    }

    /// systemd has forgotten a unit. We have not: it may come back and go on.
    pub(super) fn removed(&mut self, name: &str) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.is_held = false;
        }
        if self.entries.len() > REMEMBERED {
            self.entries.retain(|_, entry| entry.is_held);
        }
    }

    /// All settings are to be looked at again. Gives back the units that are held.
    pub(super) fn reloaded(&mut self) -> Vec<String> {
        let held = self.entries.iter_mut().filter(|(_, entry)| entry.is_held);
        held.map(|(name, entry)| {
            entry.look_again();
            name.clone()
        })
        .collect()
    }

    /// Takes changed properties. Those of the type of unit come first and are kept;
    /// with the general ones the change is complete.
    pub(super) fn changed(&mut self, name: &str, interface: &str, values: &Values) -> Vec<Note> {
        let since_ns = self.since_ns;
        let entry = self.entry(name);
        if interface == UNIT {
            entry.is_held = true;
            entry.take_unit(values, since_ns)
        } else {
            entry.take_kind(values)
        }
    }

    /// Tells of the units that failed some time ago and still are. A service that will be
    /// restarted passes through the state `failed` too, and has not failed.
    pub(super) fn settle_failures(&mut self) -> Vec<Note> {
        let entries = self.entries.values_mut();
        entries.filter_map(Entry::settle_failure).collect()
    }

    /// Takes all properties of a unit; those of its type have been taken already.
    pub(super) fn looked(&mut self, name: &str, kind: &Values, unit: &Values) -> Vec<Note> {
        let since_ns = self.since_ns;
        let entry = self.entry(name);
        let mut notes = entry.take_unit(unit, since_ns);
        notes.extend(entry.take_settings(kind, unit));
        notes
    }

    /// A job ended because of another unit; no state of this one tells of that.
    pub(super) fn job_ended(&mut self, name: &str, result: &str) -> Option<Note> {
        (result == "dependency").then(|| Note::Event {
            at_monotonic_ns: None,
            unit: self.entry(name).subject.clone(),
            what: Box::new(Happening::Failed(UnitStopped {
                result: Some(result.to_owned()),
                ..UnitStopped::default()
            })),
        })
    }

    /// Whether the state of a unit is this one.
    pub(super) fn is(&self, name: &str, active: &str) -> bool {
        self.entries
            .get(name)
            .is_some_and(|entry| entry.active == active)
    }

    fn entry(&mut self, name: &str) -> &mut Entry {
        let prefix = &self.prefix;
        self.entries.entry(name.to_owned()).or_insert_with(|| {
            let told = format!("{prefix}{name}");
            Entry::new(Subject::new(SubjectKind::Unit, told.as_str()))
        })
    }
}

#[cfg(test)]
mod tests;
