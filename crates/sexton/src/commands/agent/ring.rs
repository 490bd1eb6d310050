//! What the agent's page shows first: the ring, incidents, and findings over time.

use std::cmp::Reverse;
use std::path::Path;

use sexton_agent::{Incident, Incidents, Shared, Status};
use sexton_host::clock;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::wall::WallClock;
use sexton_store::{Bundle, Ring};
use sexton_web::{Agent, AgentView, IncidentView, LifeView, RingView};

use crate::commands::history::{self, Lived};

/// Findings that are shown; a ring of days may have had thousands.
const MAX_FINDINGS: usize = 500;

/// The agent behind its own page.
pub fn agent(ring: &Path, shared: &Shared) -> Agent {
    let (ring, shared) = (Ring::at(ring), shared.clone());
    Agent {
        incidents: ring.incidents(),
        report: Box::new(move || view(&ring, &shared.get()).map_err(|error| format!("{error:#}"))),
    }
}

fn view(ring: &Ring, status: &Status) -> anyhow::Result<AgentView> {
    let mut lives = history::lived_between(ring, &(0..=u64::MAX))?;
    lives.sort_by_key(|lived| (lived.over_ns.is_some(), Reverse(lived.opened_ns)));
    let findings_left_out = lives.len().saturating_sub(MAX_FINDINGS);
    lives.truncate(MAX_FINDINGS);
    let mut incidents = Incidents::list(&ring.incidents());
    incidents.reverse();
    Ok(AgentView {
        now: clock::wall_ns() / 1000,
        started: status.started_wall_ns / 1000,
        ring: RingView {
            from: beginning(ring)?,
            boots: status.boots,
            bytes: status.ring_bytes,
            max_bytes: status.ring_max_bytes,
            trouble: status.disk_trouble.clone(),
        },
        cpu_ratio: status.cpu_ratio,
        memory_bytes: status.memory_bytes,
        incidents: incidents.iter().map(incident).collect(),
        findings: lives.iter().map(life).collect(),
        findings_left_out,
    })
}

/// The earliest moment that the ring holds, by the clock of its time.
fn beginning(ring: &Ring) -> anyhow::Result<Option<u64>> {
    for boot in ring.boots()? {
        // A boot that was just begun holds nothing yet.
        let Ok(bundle) = Bundle::open(&boot.records) else {
            continue;
        };
        let Some(span) = bundle.span() else { continue };
        // Lines of the kernel log are older than the recording of them.
        let start = bundle.created().max(*span.start());
        let noted = start..=start.after(history::BEGINNING);
        let facts = [&SEXTON_WALL_CLOCK_NS];
        let records = bundle.load(Some(noted), Some(&facts));
        let from = WallClock::of(&records).ns(start);
        if let Some(from) = from.and_then(|ns| u64::try_from(ns).ok()) {
            return Ok(Some(from / 1000));
        }
    }
    Ok(None)
}

fn incident(incident: &Incident) -> IncidentView {
    IncidentView {
        id: IncidentView::id_of(&incident.name),
        name: incident.name.clone(),
        finding: incident.finding.clone(),
        title: incident.title.clone(),
        severity: incident.severity.clone(),
        others: incident.others.len(),
        opened: incident.opened_wall_ns / 1000,
        bytes: incident.bytes,
        is_whole: incident.is_whole,
    }
}

fn life(lived: &Lived) -> LifeView {
    let finding = &lived.life.finding;
    LifeView {
        finding: finding.id().to_string(),
        title: finding.title.clone(),
        worst: lived.life.worst.name().to_owned(),
        opened: lived.opened_ns / 1000,
        over: lived.over_ns.map(|ns| ns / 1000),
        ended_by_reboot: lived.is_ended_by_reboot,
    }
}
