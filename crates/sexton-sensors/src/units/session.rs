//! One connection to systemd, from the greeting to whatever ends it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sexton_model::gap::{Gap, Why};
use zbus::{ObjectPath, Variant};

use super::NAME;
use super::bus::{Bus, BusError};
use super::ledger::{Ledger, Row, UNIT, Values, has_settings};
use super::message::{Call, Message, Nonsense, Properties};
use super::property::{Value, path_of_unit, unit_name, unit_of_path};
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

pub(super) const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
pub(super) const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// What the bus is asked to send us. systemd's private socket sends all without asking.
const MATCHES: [&str; 3] = [
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path_namespace='/org/freedesktop/systemd1/unit'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',path='/org/freedesktop/systemd1'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.systemd1'",
];

/// A row of `ListUnits`: name, description, load, active and sub state, the unit it
/// follows, its path, and its job.
pub(super) type ListedUnit<'m> = (
    &'m str,
    &'m str,
    &'m str,
    &'m str,
    &'m str,
    &'m str,
    ObjectPath<'m>,
    u32,
    &'m str,
    ObjectPath<'m>,
);

/// A connection at work.
pub(super) struct Session<'a> {
    bus: Bus,
    /// systemd's own address on the bus: a signal that another sends us is not its.
    systemd: Option<String>,
    ledger: &'a mut Ledger,
    teller: &'a Teller,
    looks: VecDeque<(String, String)>,
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

impl<'a> Session<'a> {
    /// Asks for signals, then takes the first listing: nothing in between is missed.
    pub(super) fn begin(
        mut bus: Bus,
        ledger: &'a mut Ledger,
        teller: &'a Teller,
    ) -> Result<Self, BusError> {
        let mut systemd = None;
        if bus.has_bus() {
            for rule in MATCHES {
                bus.ask_bus("AddMatch", Some(rule))?;
            }
            let answer = bus.ask_bus("GetNameOwner", Some(SYSTEMD))?;
            let owner: &str = answer.body().map_err(|what| bus.nonsense(what))?;
            systemd = Some(owner.to_owned());
        }
        bus.ask(manager("Subscribe"))?;
        let now = Instant::now();
        let mut session = Self {
            bus,
            systemd,
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
        session.list()?;
        let held = session.ledger.reloaded();
        session.queue(held);
        Ok(session)
    }

    /// Works until the connection or the sensor ends.
    pub(super) fn work(&mut self) -> Result<(), BusError> {
        while !self.teller.is_over() {
            let until = self.next_due().min(Instant::now() + TICK);
            if let Some(message) = self.bus.signal(until)? {
                self.signal(&message)?;
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
        let lost = self.bus.take_lost();
        if lost > 0 {
            self.teller.gap(Gap::new(
                NAME,
                Why::Lost(lost),
                "signals of systemd came faster than they could be read",
            ));
        }
        if now >= self.next_look
            && let Some((name, path)) = self.looks.pop_front()
        {
            self.next_look = now + LOOK_EVERY;
            self.look(&name, &path)?;
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
                let path = path_of_unit(&name);
                self.looks.push_back((name, path));
            }
        }
    }

    fn list(&mut self) -> Result<(), BusError> {
        let answer = self.bus.ask(manager("ListUnits"))?;
        let listed: Vec<ListedUnit<'_>> = answer.body().map_err(|what| self.bus.nonsense(what))?;
        let rows: Vec<Row> = listed
            .iter()
            .filter_map(|(name, _, load, active, sub, ..)| {
                Some(Row {
                    name: unit_name(name.as_bytes())?,
                    load: (*load).to_owned(),
                    active: (*active).to_owned(),
                    sub: (*sub).to_owned(),
                })
            })
            .collect();
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
            let text = format!("{n} units changed and no signal told of it, {first} among them");
            self.teller.gap(Gap::new(NAME, Why::Lost(n), text));
        }
    }

    /// Asks for all properties of a unit.
    fn look(&mut self, name: &str, path: &str) -> Result<(), BusError> {
        let Some(interface) = has_settings(name) else {
            return Ok(());
        };
        let Some(kind) = self.properties(path, interface)? else {
            return Ok(());
        };
        self.teller
            .notes(self.ledger.changed(name, interface, &kind));
        let Some(unit) = self.properties(path, UNIT)? else {
            return Ok(());
        };
        self.teller.notes(self.ledger.looked(name, &kind, &unit));
        Ok(())
    }

    /// All properties of one interface of a unit; `None` if it went away meanwhile, or is
    /// not what its name says. The signals before the answer are older, so they are
    /// taken first.
    fn properties(&mut self, path: &str, interface: &str) -> Result<Option<Values>, BusError> {
        let answer = self.bus.ask(Call {
            destination: SYSTEMD,
            path,
            interface: PROPERTIES,
            member: "GetAll",
            text: Some(interface),
        });
        while let Some(message) = self.bus.waiting_signal() {
            self.signal(&message)?;
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(BusError::Answer { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let properties: Properties<'_> = answer.body().map_err(|what| self.bus.nonsense(what))?;
        Ok(Some(values(&properties)))
    }

    fn signal(&mut self, message: &Message) -> Result<(), BusError> {
        if message.member == "NameOwnerChanged" && message.sender == "org.freedesktop.DBus" {
            return Err(BusError::Left);
        }
        if self
            .systemd
            .as_ref()
            .is_some_and(|systemd| *systemd != message.sender)
        {
            return Ok(());
        }
        let done = match (message.interface.as_str(), message.member.as_str()) {
            (PROPERTIES, "PropertiesChanged") => self.properties_changed(message),
            (MANAGER, member) => self.manager_signal(member, message),
            _ => Ok(()),
        };
        if let Err(what) = done {
            let text = format!("a signal of systemd makes no sense: {what}");
            self.teller.gap(Gap::new(NAME, Why::Malformed, text));
        }
        Ok(())
    }

    fn properties_changed(&mut self, message: &Message) -> Result<(), Nonsense> {
        let Some(name) = unit_of_path(&message.path) else {
            return Ok(());
        };
        let (interface, properties, _): (&str, Properties<'_>, Vec<&str>) = message.body()?;
        // An interface of the type of unit that is not read here, such as those of
        // devices, has nothing to tell.
        let values = values(&properties);
        self.teller
            .notes(self.ledger.changed(&name, interface, &values));
        Ok(())
    }

    fn manager_signal(&mut self, member: &str, message: &Message) -> Result<(), Nonsense> {
        match member {
            "UnitNew" => {
                let (name, _): (&str, ObjectPath<'_>) = message.body()?;
                if let Some(name) = unit_name(name.as_bytes())
                    && self.ledger.loaded(&name)
                {
                    self.queue(vec![name]);
                }
            }
            "UnitRemoved" => {
                let (name, _): (&str, ObjectPath<'_>) = message.body()?;
                if let Some(name) = unit_name(name.as_bytes()) {
                    self.ledger.removed(&name);
                }
            }
            "JobRemoved" => {
                let (_, _, name, result): (u32, ObjectPath<'_>, &str, &str) = message.body()?;
                if let Some(name) = unit_name(name.as_bytes()) {
                    self.teller
                        .notes(self.ledger.job_ended(&name, result).into_iter().collect());
                }
            }
            "Reloading" | "UnitFilesChanged" => {
                let soon = Instant::now() + SETTLE;
                let due = self.last_relook.map_or(soon, |last| last + RELOOK_EVERY);
                self.relook = Some(due.max(soon));
            }
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn manager(member: &str) -> Call<'_> {
    Call {
        destination: SYSTEMD,
        path: MANAGER_PATH,
        interface: MANAGER,
        member,
        text: None,
    }
}

pub(super) fn values(properties: &Properties<'_>) -> Values {
    let value = |(name, variant): (&&str, &Variant<'_>)| (String::from(*name), Value::of(variant));
    properties.iter().map(value).collect()
}
