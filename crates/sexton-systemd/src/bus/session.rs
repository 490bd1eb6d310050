//! What is asked of a manager, and what it says by itself.

use std::time::Instant;

use zbus::ObjectPath;

use super::connection::Connection;
use super::error::{BusError, Malformed};
use super::message::{Call, Message};
use super::property::{
    BorrowedProperties, Properties, path_of_unit, properties, unit_name, unit_of_path,
};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Properties in a message that is larger are not read.
///
/// Each byte of an array becomes a value of 64 bytes while it is decoded: 16 MiB of them take
/// 1 GiB, and any user can send them. All properties of a service with all its environment are
/// some 100 KiB.
const PROPERTIES_BYTES: usize = 1 << 20;

/// What the bus is asked to send us. systemd's private socket sends all without asking.
const MATCHES: [&str; 3] = [
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path_namespace='/org/freedesktop/systemd1/unit'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',path='/org/freedesktop/systemd1'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.systemd1'",
];

/// A row of `ListUnits`: name, description, load, active and sub state, the unit it
/// follows, its path, and its job.
pub(super) type Row<'m> = (
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

/// What `PropertiesChanged` carries: an interface, what changed, and what else did.
pub(super) type Changed<'m> = (&'m str, BorrowedProperties<'m>, Vec<&'m str>);

/// What `JobRemoved` carries: id, path, unit, result.
pub(super) type Job<'m> = (u32, ObjectPath<'m>, &'m str, &'m str);

/// One unit of a listing. The name is escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedUnit {
    /// Its name.
    pub name: String,
    /// Whether its file could be loaded.
    pub load: String,
    /// Its state: `active`, `failed` and so on.
    pub active: String,
    /// The state that its type has for that.
    pub sub: String,
}

/// What a manager says by itself. Names of units are escaped.
#[derive(Debug)]
pub enum Signal {
    /// Properties of a unit changed.
    Changed {
        /// The unit.
        unit: String,
        /// The interface they belong to.
        interface: String,
        /// Their new values.
        properties: Properties,
    },
    /// A unit was loaded.
    Loaded(String),
    /// A unit was forgotten.
    Forgotten(String),
    /// A job ended.
    JobEnded {
        /// The unit it was for.
        unit: String,
        /// How it ended.
        result: String,
    },
    /// Unit files changed, or were read again.
    FilesChanged,
    /// A signal or an answer that does not carry what it should.
    Malformed(Malformed),
}

/// An open connection to a manager.
pub struct Session {
    connection: Connection,
    /// systemd's own address on the bus: a signal that another sends us is not its.
    systemd: Option<String>,
    /// What is wrong with an answer that was passed over, until it is told.
    fault: Option<Malformed>,
}

impl Session {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            systemd: None,
            fault: None,
        }
    }

    /// Asks for signals.
    pub fn subscribe(&mut self) -> Result<(), BusError> {
        if self.connection.has_bus() {
            for rule in MATCHES {
                self.connection.ask_bus("AddMatch", Some(rule))?;
            }
            let answer = self.connection.ask_bus("GetNameOwner", Some(SYSTEMD))?;
            let owner: &str = answer
                .body()
                .map_err(|what| self.connection.malformed(what))?;
            self.systemd = Some(owner.to_owned());
        }
        self.ask_manager("Subscribe")?;
        Ok(())
    }

    /// All units that the manager holds.
    pub fn list_units(&mut self) -> Result<Vec<ListedUnit>, BusError> {
        let answer = self.ask_manager("ListUnits")?;
        listed(&answer).map_err(|what| self.connection.malformed(what))
    }

    /// All properties of one interface of a unit; `None` if it went away meanwhile, or is
    /// not what its name says, or has too many. The signals that now wait are older than the answer.
    pub fn properties(
        &mut self,
        unit: &str,
        interface: &str,
    ) -> Result<Option<Properties>, BusError> {
        let answer = self.connection.ask(Call {
            destination: SYSTEMD,
            path: &path_of_unit(unit),
            interface: PROPERTIES,
            member: "GetAll",
            text: Some(interface),
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(BusError::Answer { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // One such unit is no reason to look at no other.
        if let Err(what) = check_size(&answer) {
            self.fault = Some(what);
            return Ok(None);
        }
        let borrowed = answer.body();
        let borrowed = borrowed.map_err(|what| self.connection.malformed(what))?;
        Ok(Some(properties(&borrowed)))
    }

    /// Signals dropped since the last time this was asked.
    pub fn take_lost(&mut self) -> u64 {
        self.connection.take_lost()
    }

    /// The next signal that came before the last answer.
    pub fn waiting_signal(&mut self) -> Result<Option<Signal>, BusError> {
        if let Some(what) = self.fault.take() {
            return Ok(Some(Signal::Malformed(what)));
        }
        while let Some(message) = self.connection.waiting_signal() {
            if let Some(signal) = self.read(&message)? {
                return Ok(Some(signal));
            }
        }
        Ok(None)
    }

    /// The next signal, if one comes in time.
    pub fn signal(&mut self, until: Instant) -> Result<Option<Signal>, BusError> {
        while let Some(message) = self.connection.signal(until)? {
            if let Some(signal) = self.read(&message)? {
                return Ok(Some(signal));
            }
            // Others' signals may never end.
            if Instant::now() >= until {
                break;
            }
        }
        Ok(None)
    }

    fn ask_manager(&mut self, member: &str) -> Result<Message, BusError> {
        self.connection.ask(Call {
            destination: SYSTEMD,
            path: MANAGER_PATH,
            interface: MANAGER,
            member,
            text: None,
        })
    }

    /// What a message means; `None` where it is none of our business.
    fn read(&self, message: &Message) -> Result<Option<Signal>, BusError> {
        if message.member == "NameOwnerChanged" && message.sender == "org.freedesktop.DBus" {
            return Err(BusError::Left);
        }
        let is_strangers = |systemd: &String| *systemd != message.sender;
        if self.systemd.as_ref().is_some_and(is_strangers) {
            return Ok(None);
        }
        let read = match (message.interface.as_str(), message.member.as_str()) {
            (PROPERTIES, "PropertiesChanged") => changed(message),
            (MANAGER, member) => manager_signal(member, message),
            _ => Ok(None),
        };
        Ok(read.unwrap_or_else(|what| Some(Signal::Malformed(what))))
    }
}

/// Whether the properties in a message may be read.
fn check_size(message: &Message) -> Result<(), Malformed> {
    match message.n_bytes <= PROPERTIES_BYTES {
        true => Ok(()),
        false => Err(Malformed::TooLarge(message.n_bytes as u64)),
    }
}

/// The units of an answer to `ListUnits`.
pub(super) fn listed(answer: &Message) -> Result<Vec<ListedUnit>, Malformed> {
    let rows: Vec<Row<'_>> = answer.body()?;
    let unit = |(name, _, load, active, sub, ..): &Row<'_>| {
        Some(ListedUnit {
            name: unit_name(name.as_bytes())?,
            load: (*load).to_owned(),
            active: (*active).to_owned(),
            sub: (*sub).to_owned(),
        })
    };
    Ok(rows.iter().filter_map(unit).collect())
}

fn changed(message: &Message) -> Result<Option<Signal>, Malformed> {
    let Some(unit) = unit_of_path(&message.path) else {
        return Ok(None);
    };
    check_size(message)?;
    let (interface, borrowed, _): Changed<'_> = message.body()?;
    Ok(Some(Signal::Changed {
        unit,
        interface: interface.to_owned(),
        properties: properties(&borrowed),
    }))
}

fn manager_signal(member: &str, message: &Message) -> Result<Option<Signal>, Malformed> {
    Ok(match member {
        "UnitNew" => {
            let (name, _): (&str, ObjectPath<'_>) = message.body()?;
            unit_name(name.as_bytes()).map(Signal::Loaded)
        }
        "UnitRemoved" => {
            let (name, _): (&str, ObjectPath<'_>) = message.body()?;
            unit_name(name.as_bytes()).map(Signal::Forgotten)
        }
        "JobRemoved" => {
            let (_, _, name, result): Job<'_> = message.body()?;
            unit_name(name.as_bytes()).map(|unit| Signal::JobEnded {
                unit,
                result: result.to_owned(),
            })
        }
        "Reloading" | "UnitFilesChanged" => Some(Signal::FilesChanged),
        _ => None,
    })
}
