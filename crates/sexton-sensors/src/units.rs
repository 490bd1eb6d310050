//! Watches every systemd unit: who starts, stops, fails, how often, and what it is set
//! to do.
//!
//! Source: signals of systemd over the system bus, or over its private socket where
//! there is no bus; a full listing every five minutes repairs what signals missed.
//! Blind to: restarts inside a unit (a supervisor, a container runtime), units that are
//! on disk and not loaded, user managers.
//! Overhead: `docs/overhead.md#units`.

mod bus;
pub(crate) mod fuzzing;
mod ledger;
mod message;
mod property;
mod session;
mod survey;
mod teller;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_model::fact::unit as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};

use crate::{Sensor, SensorSpec};
use bus::{Bus, BusError};
use ledger::{Ledger, Note};
use session::Session;
use teller::{News, Teller};

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
        &fact::UNIT_SEEN,
        &fact::UNIT_CHANGED,
        &fact::UNIT_STARTED,
        &fact::UNIT_STOPPED,
        &fact::UNIT_FAILED,
    ],
    every: Duration::from_secs(5),
    deadline: Duration::from_secs(1),
    examine,
    open,
};

/// systemd makes this directory when it is the first process, and nobody else does.
const BOOTED: &str = "/run/systemd/system";

/// After a failure we wait so long, and twice as long after each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Where systemd can be asked, and how long that may take.
#[derive(Debug, Clone)]
pub struct Places {
    /// The socket of the system bus.
    pub bus: PathBuf,
    /// systemd's own socket, which is for root and needs no bus.
    pub private: PathBuf,
    /// The longest wait for any answer.
    pub within: Duration,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            bus: "/run/dbus/system_bus_socket".into(),
            private: "/run/systemd/private".into(),
            within: Duration::from_secs(5),
        }
    }
}

impl Places {
    /// Connects to the first that answers. The errors are of those before it.
    fn connect(&self) -> (Option<Bus>, Vec<BusError>) {
        let mut errors = Vec::new();
        for (path, has_bus) in [(&self.bus, true), (&self.private, false)] {
            match Bus::connect(path, has_bus, self.within) {
                Ok(bus) => return (Some(bus), errors),
                Err(error) => errors.push(error),
            }
        }
        (None, errors)
    }
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    is_booted(host)?;
    Ok(Box::new(Units::watch(Places::default())))
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

/// The sensor. A thread of its own talks to systemd; a poll takes what it has said.
#[derive(Debug)]
pub struct Units {
    news: Receiver<News>,
    teller: Arc<Teller>,
}

impl Units {
    /// Watches the systemd at these places.
    pub fn watch(places: Places) -> Self {
        let (teller, news) = Teller::new();
        let teller = Arc::new(teller);
        let own = Arc::clone(&teller);
        thread::spawn(move || talk(&places, &own));
        Self { news, teller }
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        // Not waited for: it is gone within the deadline of its last question.
        self.teller.end();
    }
}

/// Talks to systemd, again and again, until the sensor is dropped.
fn talk(places: &Places, teller: &Teller) {
    let mut ledger = Ledger::new(clock::monotonic_ns());
    let mut wait = FIRST_WAIT;
    while !teller.is_over() {
        let began = Instant::now();
        let (bus, errors) = places.connect();
        for error in &errors {
            // A bus that is not there is no loss while systemd itself answers.
            let is_absent = matches!(error, BusError::Connect { .. }) && bus.is_some();
            if !is_absent {
                teller.gap(gap_of(error));
            }
        }
        if let Some(bus) = bus {
            let done = Session::begin(bus, &mut ledger, teller).and_then(|mut it| it.work());
            if let Err(error) = done {
                teller.gap(gap_of(&error));
            }
        }
        teller.blind();
        if began.elapsed() > LONGEST_WAIT {
            wait = FIRST_WAIT;
        }
        teller.sleep(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
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
    fn poll(&mut self, _: &Host, out: &mut Sink) {
        let sensor = Subject::new(SubjectKind::Sensor, NAME);
        let mut starts: BTreeMap<Subject, u64> = BTreeMap::new();
        let mut restarts: BTreeMap<Subject, u64> = BTreeMap::new();
        for news in self.news.try_iter() {
            match news {
                News::Gap(gap) => out.gap(&sensor, gap),
                News::Note(Note::Starts { unit, n }) => *starts.entry(unit).or_default() += n,
                News::Note(Note::Restarts { unit, n }) => {
                    restarts.insert(unit, n);
                }
                News::Note(Note::Event {
                    at_monotonic_ns,
                    unit,
                    fact,
                    details,
                }) => {
                    let at = at_monotonic_ns.map_or_else(clock::now, clock::of_monotonic);
                    out.event(at, &unit, fact, details);
                }
            }
        }
        for (unit, n) in starts {
            out.sample(&unit, &fact::UNIT_STARTS, n as f64);
        }
        for (unit, n) in restarts {
            out.sample(&unit, &fact::UNIT_RESTARTS, n as f64);
        }
        if let Some((n, n_failed)) = self.teller.last_counts() {
            out.sample(&Subject::node(), &fact::UNITS, n as f64);
            out.sample(&Subject::node(), &fact::UNITS_FAILED, n_failed as f64);
        }
        let lost = self.teller.take_lost();
        if lost > 0 {
            let text = "changes of units came faster than they were polled";
            out.gap(&sensor, Gap::new(NAME, Why::Lost(lost), text));
        }
    }
}

#[cfg(test)]
mod tests;
