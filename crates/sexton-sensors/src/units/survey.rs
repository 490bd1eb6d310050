//! One look at all units, for the gate: which have failed, and how often systemd has
//! restarted each service.

use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_model::gap::{Gap, Why};
use sexton_model::gate::UnitSurvey;

use super::bus::{Bus, BusError};
use super::message::{Call, Properties};
use super::property::{Value, path_of_unit, unit_name};
use super::session::{ListedUnit, PROPERTIES, SYSTEMD, manager};
use super::{NAME, Places, gap_of, is_booted};

const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// Services are asked one by one for so long; the others are counted as not asked.
const ASK_FOR: Duration = Duration::from_secs(1);

/// Looks once. A node that systemd does not run has no units.
pub fn survey(host: &Host, places: &Places) -> Result<UnitSurvey, Gap> {
    if let Err(gap) = is_booted(host) {
        return match first_process_is_systemd(host) {
            // Nothing is hidden: there are no units.
            Some(false) => Ok(UnitSurvey::default()),
            _ => Err(gap),
        };
    }
    let (bus, errors) = places.system().connect();
    let Some(mut bus) = bus else {
        return Err(errors.first().map_or_else(
            || Gap::new(NAME, Why::Bug, "there is no place to ask"),
            gap_of,
        ));
    };
    look(&mut bus).map_err(|error| gap_of(&error))
}

/// Whether systemd is the first process; `None` when that cannot be told.
fn first_process_is_systemd(host: &Host) -> Option<bool> {
    let comm = host.read_text(host.proc("1/comm").ok()?).ok()?;
    Some(comm.trim() == "systemd")
}

fn look(bus: &mut Bus) -> Result<UnitSurvey, BusError> {
    let answer = bus.ask(manager("ListUnits"))?;
    let listed: Vec<ListedUnit<'_>> = answer.body().map_err(|what| bus.nonsense(what))?;
    let mut survey = UnitSurvey {
        n_units: listed.len() as u64,
        uptime_seconds: clock::now().as_ns() / 1_000_000_000,
        ..UnitSurvey::default()
    };
    let mut services = Vec::new();
    for (name, _, _, active, sub, ..) in &listed {
        let Some(name) = unit_name(name.as_bytes()) else {
            continue;
        };
        if *active == "failed" {
            survey.failed.push(name.clone());
        }
        // A service that is down is not in a loop; one that waits to be restarted is not down.
        if name.ends_with(".service") && *active != "inactive" {
            services.push((suspicion(sub), name));
        }
    }
    services.sort();
    let until = Instant::now() + ASK_FOR;
    for (_, name) in services {
        if Instant::now() >= until {
            survey.n_unasked += 1;
        } else if let Some(n) = restarts(bus, &name)? {
            survey.restarts.push((name, n));
        }
    }
    Ok(survey)
}

/// Those that are most likely in a loop are asked first.
fn suspicion(sub: &str) -> u8 {
    match sub {
        "auto-restart" | "auto-restart-queued" => 0,
        "start" | "start-pre" | "start-post" | "stop" => 1,
        "failed" => 2,
        "running" => 3,
        _ => 4,
    }
}

/// systemd's own count; `None` when the unit went away meanwhile, or has none.
fn restarts(bus: &mut Bus, name: &str) -> Result<Option<u64>, BusError> {
    let path = path_of_unit(name);
    let answer = bus.ask(Call {
        destination: SYSTEMD,
        path: &path,
        interface: PROPERTIES,
        member: "GetAll",
        text: Some(SERVICE),
    });
    // Nobody listens to signals here.
    while bus.waiting_signal().is_some() {}
    let answer = match answer {
        Ok(answer) => answer,
        Err(BusError::Answer { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let properties: Properties<'_> = answer.body().map_err(|what| bus.nonsense(what))?;
    let n = properties.get("NRestarts");
    Ok(n.and_then(|variant| Value::of(variant).number()))
}
