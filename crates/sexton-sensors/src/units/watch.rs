//! One connection to a manager, from the first listing to what ends it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sexton_model::gap::{Gap, Why};
use sexton_systemd::bus::{BusError, Session, Signal};

use super::NAME;
use super::ledger::{Ledger, Row, UNIT, Values, has_settings};
use super::teller::Teller;

/// A listing repairs what signals missed. It costs systemd about a millisecond for
/// each hundred units.
const LIST_EVERY: Duration = Duration::from_secs(300);

/// A unit may be in another state than signals said for so long: they are on their way.
const GRACE: Duration = Duration::from_secs(3);

/// Units are looked at one by one, so that systemd can do other work in between.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A reload makes all settings doubtful; after one, they are looked at again no more
/// often than this.
const RELOOK_EVERY: Duration = Duration::from_secs(60);

/// Enabling a unit changes a file, then reloads; until that is done, systemd tells the old
/// state.
const SETTLE: Duration = Duration::from_secs(2);

/// Units that may wait to be looked at. The slow listing brings back the others.
const LOOKS: usize = 20_000;

/// Units are counted so often.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// The longest wait for a signal: so soon the end of the sensor is noticed.
const TICK: Duration = Duration::from_millis(250);

/// A connection at work.
pub(super) struct Watch<'a> {
    session: Session,
    ledger: &'a mut Ledger,
    teller: &'a Teller,
    looks: VecDeque<String>,
    next_look: Instant,
    next_list: Instant,
    next_count: Instant,
    /// When all settings are to be looked at again.
    relook: Option<Instant>,
    last_relook: Option<Instant>,
    /// Units whose state signals have not told yet, and until when they may.
    doubts: Vec<Row>,
    doubts_until: Option<Instant>,
}

impl<'a> Watch<'a> {
    /// Asks for signals, then takes the first listing: nothing in between is missed.
    pub(super) fn begin(
        mut session: Session,
        ledger: &'a mut Ledger,
        teller: &'a Teller,
    ) -> Result<Self, BusError> {
        session.subscribe()?;
        let now = Instant::now();
        let mut watch = Self {
            session,
            ledger,
            teller,
            looks: VecDeque::new(),
            next_look: now,
            next_list: now + LIST_EVERY,
            next_count: now,
            relook: None,
            last_relook: None,
            doubts: Vec::new(),
            doubts_until: None,
        };
        watch.list()?;
        let held = watch.ledger.reloaded();
        watch.queue(held);
        Ok(watch)
    }

    /// Works until the connection or the sensor ends.
    pub(super) fn work(&mut self) -> Result<(), BusError> {
        while !self.teller.is_over() {
            let until = self.next_due().min(Instant::now() + TICK);
            if let Some(signal) = self.session.signal(until)? {
                self.signal(signal);
            }
            self.do_what_is_due()?;
        }
        Ok(())
    }

    fn next_due(&self) -> Instant {
        let look = (!self.looks.is_empty()).then_some(self.next_look);
        [look, self.relook, self.doubts_until]
            .into_iter()
            .flatten()
            .fold(self.next_list, Instant::min)
    }

    fn do_what_is_due(&mut self) -> Result<(), BusError> {
        let now = Instant::now();
        if now >= self.next_count {
            self.next_count = now + COUNT_EVERY;
            self.teller.counts(self.ledger.counts());
            self.teller.notes(self.ledger.settle_failures());
        }
        let lost = self.session.take_lost();
        if lost > 0 {
            self.teller.gap(Gap::new(
                NAME,
                Why::Lost(lost),
                "signals of systemd came faster than they could be read",
            ));
        }
        if now >= self.next_look
            && let Some(name) = self.looks.pop_front()
        {
            self.next_look = now + LOOK_EVERY;
            self.look(&name)?;
        }
        if self.relook.is_some_and(|due| now >= due) {
            self.relook = None;
            self.last_relook = Some(now);
            let held = self.ledger.reloaded();
            self.looks.clear();
            self.queue(held);
        }
        if self.doubts_until.is_some_and(|due| now >= due) {
            self.settle_doubts();
        }
        if now >= self.next_list {
            self.next_list = now + LIST_EVERY;
            self.list()?;
        }
        Ok(())
    }

    fn queue(&mut self, names: Vec<String>) {
        for name in names {
            if has_settings(&name).is_some() && self.looks.len() < LOOKS {
                self.looks.push_back(name);
            }
        }
    }

    fn list(&mut self) -> Result<(), BusError> {
        let rows = self.session.list_units()?;
        let mut notes = Vec::new();
        let differ = self.ledger.list(&rows, &mut notes);
        self.teller.notes(notes);
        self.doubts = rows
            .into_iter()
            .filter(|row| differ.contains(&row.name))
            .collect();
        self.doubts_until = (!self.doubts.is_empty()).then(|| Instant::now() + GRACE);
        Ok(())
    }

    /// What has not been told by now never will be: the listing is believed.
    fn settle_doubts(&mut self) {
        self.doubts_until = None;
        let doubts = std::mem::take(&mut self.doubts);
        let (mut n, mut first) = (0, String::new());
        for row in doubts {
            if self.ledger.is(&row.name, &row.active) {
                continue;
            }
            n += 1;
            if first.is_empty() {
                first.clone_from(&row.name);
            }
            if has_settings(&row.name).is_some() {
                self.queue(vec![row.name]);
            } else {
                self.teller.notes(self.ledger.believe(&row));
            }
        }
        if n > 0 {
            let text = format!("{n} units changed without a signal, {first} among them");
            self.teller.gap(Gap::new(NAME, Why::Lost(n), text));
        }
    }

    /// Asks for all properties of a unit.
    fn look(&mut self, name: &str) -> Result<(), BusError> {
        let Some(interface) = has_settings(name) else {
            return Ok(());
        };
        let Some(kind) = self.properties(name, interface)? else {
            return Ok(());
        };
        self.teller
            .notes(self.ledger.changed(name, interface, &kind));
        let Some(unit) = self.properties(name, UNIT)? else {
            return Ok(());
        };
        self.teller.notes(self.ledger.looked(name, &kind, &unit));
        Ok(())
    }

    /// All properties of one interface of a unit. The signals before the answer are older, so
    /// they are taken first.
    fn properties(&mut self, name: &str, interface: &str) -> Result<Option<Values>, BusError> {
        let answer = self.session.properties(name, interface);
        while let Some(signal) = self.session.waiting_signal()? {
            self.signal(signal);
        }
        answer
    }

    fn signal(&mut self, signal: Signal) {
        match signal {
            Signal::Changed {
                unit,
                interface,
                properties,
            } => {
                let notes = self.ledger.changed(&unit, &interface, &properties);
                self.teller.notes(notes);
            }
            Signal::Loaded(name) => {
                if self.ledger.loaded(&name) {
                    self.queue(vec![name]);
                }
            }
            Signal::Forgotten(name) => self.ledger.removed(&name),
            Signal::JobEnded { unit, result } => {
                let note = self.ledger.job_ended(&unit, &result);
                self.teller.notes(note.into_iter().collect());
            }
            Signal::FilesChanged => {
                let soon = Instant::now() + SETTLE;
                let due = self.last_relook.map_or(soon, |last| last + RELOOK_EVERY);
                self.relook = Some(due.max(soon));
            }
            Signal::Malformed(what) => {
                let text = format!("cannot read a message of systemd: {what}");
                self.teller.gap(Gap::new(NAME, Why::Malformed, text));
            }
        }
    }
}
