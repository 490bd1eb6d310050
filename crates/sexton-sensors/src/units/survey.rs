//! One look at all units, for the gate: which have failed, and how often systemd has
//! restarted each service.

use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_model::gap::{Gap, Why};
use sexton_model::gate::UnitSurvey;
use sexton_systemd::bus::{BusError, Session, Value};

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
    let (session, errors) = places.system().connect();
    let Some(mut session) = session else {
        return Err(errors.first().map_or_else(
            || Gap::new(NAME, Why::Bug, "there is no place to ask"),
            gap_of,
        ));
    };
    look(&mut session).map_err(|error| gap_of(&error))
}

/// Whether systemd is the first process; `None` when that cannot be told.
fn first_process_is_systemd(host: &Host) -> Option<bool> {
    let comm = host.read_text(host.proc("1/comm").ok()?).ok()?;
    Some(comm.trim() == "systemd")
}

fn look(session: &mut Session) -> Result<UnitSurvey, BusError> {
    let listed = session.list_units()?;
    let mut survey = UnitSurvey {
        n_units: listed.len() as u64,
        uptime_seconds: clock::now().as_ns() / 1_000_000_000,
        ..UnitSurvey::default()
    };
    let mut services = Vec::new();
    for unit in listed {
        if unit.active == "failed" {
            survey.failed.push(unit.name.clone());
        }
        // A service that is down is not in a loop; one that waits to be restarted is not down.
        if unit.name.ends_with(".service") && unit.active != "inactive" {
            let suspicion = suspicion(&unit.sub);
            if suspicion == WAITS {
                survey.waiting.push(unit.name.clone());
            }
            services.push((suspicion, unit.name));
        }
    }
    services.sort();
    let until = Instant::now() + ASK_FOR;
    for (_, name) in services {
        if Instant::now() >= until {
            survey.n_unasked += 1;
        } else if let Some(n) = restarts(session, &name)? {
            survey.restarts.push((name, n));
        }
    }
    Ok(survey)
}

/// It waits for its next restart.
const WAITS: u8 = 0;

/// Those that are most likely in a loop are asked first.
fn suspicion(sub: &str) -> u8 {
    match sub {
        "auto-restart" | "auto-restart-queued" => WAITS,
        "start" | "start-pre" | "start-post" | "stop" => 1,
        "failed" => 2,
        "running" => 3,
        _ => 4,
    }
}

/// systemd's own count; `None` when the unit went away meanwhile, or has none.
fn restarts(session: &mut Session, name: &str) -> Result<Option<u64>, BusError> {
    let properties = session.properties(name, SERVICE)?;
    // Nothing here listens to signals.
    while session.waiting_signal()?.is_some() {}
    Ok(properties.and_then(|properties| properties.get("NRestarts").and_then(Value::number)))
}
