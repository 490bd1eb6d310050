//! `sexton incidents`: what the agent kept, and finding one by its name.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use sexton_agent::{Incident, Incidents};
use sexton_model::moment::Moment;
use sexton_model::wall::WallClock;
use sexton_store::Ring;

use super::history;
use crate::cli::Format;
use crate::cli::agent::{IncidentsArgs, SOCKET};
use crate::exit::Exit;

/// Lists them, newest first.
pub fn run(args: &IncidentsArgs) -> Result<Exit> {
    let folder = Ring::at(&history::ring_of(&args.agent.socket)?).incidents();
    let mut incidents = Incidents::list(&folder);
    incidents.reverse();
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Json => {
            let all = serde_json::json!({
                "schema": "sexton.incidents/1",
                "folder": folder,
                "incidents": incidents,
            });
            serde_json::to_writer_pretty(&mut out, &all)?;
            writeln!(out)?;
        }
        Format::Text => text(&mut out, &folder, &incidents)?,
    }
    out.flush()?;
    Ok(match incidents.is_empty() {
        true => Exit::NothingFound,
        false => Exit::Found,
    })
}

fn text(out: &mut dyn Write, folder: &Path, incidents: &[Incident]) -> io::Result<()> {
    if incidents.is_empty() {
        return writeln!(out, "No incident is kept in {}.", folder.display());
    }
    for incident in incidents {
        let opened = Moment::from_ns(incident.opened_ns);
        let clock = WallClock::new(vec![(opened, incident.opened_wall_ns)]);
        let opened = clock.rfc3339(opened).unwrap_or_default();
        let state = if incident.is_whole {
            ""
        } else {
            ", still being kept"
        };
        writeln!(
            out,
            "{}  {} {} ({:.1} MiB{state})",
            incident.name,
            incident.severity,
            opened,
            incident.bytes as f64 / f64::from(1 << 20)
        )?;
        writeln!(out, "    {}: {}", incident.finding, incident.title)?;
    }
    writeln!(
        out,
        "\nsexton diagnose --from NAME judges one; sexton serve NAME shows it."
    )
}

/// A recording by its path, or an incident of the agent by its name.
pub fn path_of(given: &Path) -> PathBuf {
    let is_name = given.components().count() == 1 && !given.exists();
    if is_name && let Ok(ring) = history::ring_of(Path::new(SOCKET)) {
        let kept = Ring::at(&ring).incidents().join(given);
        if kept.is_dir() {
            return kept;
        }
    }
    given.to_owned()
}
