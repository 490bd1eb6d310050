//! Watches every systemd unit: who starts, stops, fails, how often, and what it is set
//! to do.
//!
//! Source: signals of systemd over the system bus, or over its private socket where
//! there is no bus; a full listing every five minutes repairs what signals missed.
//! Managers of users are asked over their own sockets, as soon as they are there.
//! Blind to: restarts inside a unit (a supervisor, a container runtime), units that are
//! on disk and not loaded.
//! Overhead: `docs/overhead.md#units`.

pub(crate) mod fuzzing;
mod ledger;
mod line;
mod survey;
mod teller;
mod users;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::Host;
use sexton_model::fact::unit as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_systemd::bus::{BusError, Manager};

use crate::{Sensor, SensorSpec, node_mounts};
use line::Line;
use users::Users;

pub use survey::survey;

pub(crate) const NAME: &str = "units";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "systemd units: starts, stops, failures, restart loops, what is enabled",
    emits: &[
        &fact::UNITS,
        &fact::UNITS_FAILED,
        &fact::UNIT_STARTS,
        &fact::UNIT_RESTARTS,
        &fact::UNIT_SEEN.fact,
        &fact::UNIT_CHANGED.fact,
        &fact::UNIT_STARTED.fact,
        &fact::UNIT_STOPPED.fact,
        &fact::UNIT_FAILED.fact,
    ],
    every: Duration::from_secs(5),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

/// systemd makes this directory when it is the first process, and nobody else does.
const BOOTED: &str = "/run/systemd/system";

/// Where systemd can be asked, and how long that may take.
#[derive(Debug, Clone)]
pub struct Places {
    /// The socket of the system bus.
    pub bus: PathBuf,
    /// systemd's own socket, which is for root and needs no bus.
    pub private: PathBuf,
    /// Where users who are here have a folder each, with the socket of their own manager.
    pub users: PathBuf,
    /// The longest wait for any answer.
    pub within: Duration,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            bus: "/run/dbus/system_bus_socket".into(),
            private: "/run/systemd/private".into(),
            users: "/run/user".into(),
            within: Duration::from_secs(5),
        }
    }
}

impl Places {
    /// The manager of the node.
    fn system(&self) -> Manager {
        Manager::of_node(self.bus.clone(), self.private.clone(), self.within)
    }
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    is_booted(host)?;
    let mut places = Places::default();
    // In a sandbox users' folders may be hidden, which must not look as if there were no users.
    if let Ok(whose) = node_mounts::whose(host) {
        places.users = node_mounts::reached_at(&whose, &places.users);
    }
    Ok(Box::new(Units::watch(&places)))
}

/// Whether systemd runs this node.
fn is_booted(host: &Host) -> Result<(), Gap> {
    if !host.is_live() {
        let text = "this is not a running node, so its systemd cannot be asked";
        return Err(Gap::new(NAME, Why::Unsupported, text));
    }
    match host.list(BOOTED) {
        Ok(_) => Ok(()),
        Err(error) if error.is_absent() => Err(Gap::new(
            NAME,
            Why::Unsupported,
            format!("systemd does not run this node: there is no {BOOTED}"),
        )),
        Err(error) => Err(Gap::new(NAME, error.why(), error.chain())),
    }
}

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "systemd";
    if let Err(gap) = is_booted(host) {
        return vec![Sight::blind(WHAT, gap.text)];
    }
    let places = Places::default();
    let sockets = [&places.bus, &places.private].map(|path| (path, is_there(host, path)));
    match sockets {
        [(bus, true), _] => vec![Sight::sees(WHAT, format!("asked over {}", bus.display()))],
        [_, (private, true)] => vec![Sight::sees(
            WHAT,
            format!("asked over {}, for root only", private.display()),
        )],
        [(bus, _), _] => vec![
            Sight::blind(WHAT, format!("there is no {}", bus.display()))
                .with_remedy("start the bus: systemctl start dbus.socket"),
        ],
    }
}

fn is_there(host: &Host, path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    host.list(folder)
        .is_ok_and(|entries| entries.iter().any(|entry| entry.name == name))
}

/// The sensor.
#[derive(Debug)]
pub struct Units {
    system: Line,
    users: Users,
}

impl Units {
    /// Watches the managers at these places.
    pub fn watch(places: &Places) -> Self {
        Self {
            system: Line::watch(places.system()),
            users: Users::new(&places.users, places.within),
        }
    }
}

fn gap_of(error: &BusError) -> Gap {
    let gap = Gap::new(NAME, error.why(), error.to_string());
    match error.why() {
        Why::Denied => gap.with_remedy("run as root"),
        _ => gap,
    }
}

impl Sensor for Units {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let sensor = Subject::new(SubjectKind::Sensor, NAME);
        self.system.pass_on(&sensor, out);
        self.users.poll(host, &sensor, out);
        if let Some((n, n_failed)) = self.system.counts() {
            out.sample(&Subject::node(), &fact::UNITS, n as f64);
            out.sample(&Subject::node(), &fact::UNITS_FAILED, n_failed as f64);
        }
    }
}

#[cfg(test)]
mod tests;
