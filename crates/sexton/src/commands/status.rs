//! `sexton status`: how the agent is, at a glance.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use sexton_agent::{FleetStatus, Status, ask};
use sexton_host::clock;

use crate::cli::Format;
use crate::cli::agent::StatusArgs;
use crate::exit::Exit;

const MIB: f64 = (1 << 20) as f64;

/// Asks the agent and writes what it says.
pub fn run(args: &StatusArgs) -> Result<Exit> {
    let status = of_agent(&args.agent.socket)?;
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &status)?;
            writeln!(out)?;
        }
        Format::Text => text(&mut out, &status)?,
    }
    out.flush()?;
    Ok(match status.state.as_deref() {
        Some("healthy") => Exit::NothingFound,
        Some("cause-found" | "symptoms-only") => Exit::Found,
        _ => Exit::Blind,
    })
}

/// The status of the agent behind a socket.
pub fn of_agent(socket: &Path) -> Result<Status> {
    ask(socket).with_context(|| {
        format!(
            "no agent answers on {}; start one with `sexton agent`, or name its socket with --agent",
            socket.display()
        )
    })
}

fn text(out: &mut dyn Write, status: &Status) -> io::Result<()> {
    let now_ns = clock::wall_ns();
    let state = status.state.as_deref().unwrap_or("not judged yet");
    writeln!(out, "{state}: {}", status.headline)?;
    writeln!(
        out,
        "\nagent    {}, pid {}, up {}",
        status.version,
        status.pid,
        ago(now_ns, status.started_wall_ns)
    )?;
    let cpu = status
        .cpu_ratio
        .map_or("not measured yet".to_owned(), |ratio| {
            format!("{:.2} % of a core", ratio * 100.0)
        });
    writeln!(
        out,
        "budget   {cpu} (limit {:.2} %), {:.0} MiB (limit {:.0} MiB)",
        status.cpu_limit_ratio * 100.0,
        status.memory_bytes as f64 / MIB,
        status.memory_limit_bytes as f64 / MIB
    )?;
    writeln!(
        out,
        "ring     {}: {:.0} of {:.0} MiB, {} boot(s)",
        status.ring.display(),
        status.ring_bytes as f64 / MIB,
        status.ring_max_bytes as f64 / MIB,
        status.boots
    )?;
    if let Some(trouble) = &status.disk_trouble {
        writeln!(out, "         CANNOT RECORD: {trouble}")?;
    }
    judge(out, status, now_ns)?;
    writeln!(
        out,
        "page     {}",
        status.http.as_deref().unwrap_or("not served")
    )?;
    writeln!(
        out,
        "kept     {} incident(s), {:.0} MiB",
        status.incidents,
        status.incident_bytes as f64 / MIB
    )?;
    if let Some(reports) = &status.fleet {
        fleet(out, reports, now_ns)?;
    }
    exports(out, status)?;
    if !status.needs_restart.is_empty() {
        writeln!(
            out,
            "restart  needed for changes of {}",
            status.needs_restart.join(", ")
        )?;
    }
    sensors(out, status)?;
    findings(out, status, now_ns)?;
    acts(out, status, now_ns)
}

/// What was done without a person.
fn acts(out: &mut dyn Write, status: &Status, now_ns: u64) -> io::Result<()> {
    if status.acts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nRemedies without a person")?;
    for act in &status.acts {
        writeln!(
            out,
            "  {:<8} {:<11} {} ago: {}: {}",
            act.code,
            act.outcome,
            ago(now_ns, act.wall_ns),
            act.origin,
            act.text
        )?;
        if let Some(file) = &act.undo_file {
            writeln!(out, "           undo: sexton fix --undo {}", file.display())?;
        }
    }
    Ok(())
}

fn fleet(out: &mut dyn Write, reports: &FleetStatus, now_ns: u64) -> io::Result<()> {
    let last = match reports.sent_wall_ns {
        Some(sent) => format!("last sent {} ago", ago(now_ns, sent)),
        None => "none sent yet".to_owned(),
    };
    writeln!(
        out,
        "fleet    {}: {} report(s) sent, {last}, {} waiting, {} dropped",
        reports.lake, reports.sent, reports.waiting, reports.dropped
    )?;
    match &reports.trouble {
        Some(trouble) => writeln!(out, "         CANNOT SEND: {trouble}"),
        None => Ok(()),
    }
}

fn judge(out: &mut dyn Write, status: &Status, now_ns: u64) -> io::Result<()> {
    match status.judged_wall_ns {
        Some(judged) => writeln!(
            out,
            "judge    {} ago, took {} ms, {} records in the window",
            ago(now_ns, judged),
            status.judge_ns / 1_000_000,
            status.window_records
        ),
        None => writeln!(
            out,
            "judge    no verdict yet: the first comes within a minute"
        ),
    }
}

fn exports(out: &mut dyn Write, status: &Status) -> io::Result<()> {
    for (n, export) in status.exports.iter().enumerate() {
        let title = if n == 0 { "exports" } else { "" };
        writeln!(
            out,
            "{title:<8} {}: sent {}, refused {}, dropped {}, {:.0} s behind",
            export.channel, export.sent, export.refused, export.dropped, export.lag_seconds
        )?;
        if let Some(trouble) = &export.trouble {
            writeln!(out, "         {trouble}")?;
        }
    }
    Ok(())
}

fn sensors(out: &mut dyn Write, status: &Status) -> io::Result<()> {
    let on = status
        .sensors
        .iter()
        .filter(|(_, sensor)| sensor.state == "on");
    writeln!(
        out,
        "sensors  {} of {} see all they can",
        on.count(),
        status.sensors.len()
    )?;
    for (name, sensor) in status
        .sensors
        .iter()
        .filter(|(_, sensor)| sensor.state != "on")
    {
        let why = sensor
            .why
            .as_deref()
            .map_or(String::new(), |why| format!(": {why}"));
        writeln!(out, "         {name} is {}{why}", sensor.state)?;
    }
    Ok(())
}

fn findings(out: &mut dyn Write, status: &Status, now_ns: u64) -> io::Result<()> {
    if status.findings.is_empty() {
        return writeln!(out, "\nNo finding is open.");
    }
    writeln!(out, "\nOpen findings")?;
    for finding in &status.findings {
        writeln!(
            out,
            "  {:<8} {:<8} for {}: {}",
            finding.code,
            finding.severity,
            ago(now_ns, finding.opened_wall_ns),
            finding.title
        )?;
    }
    Ok(())
}

/// How long before now, in two units at most.
pub fn ago(now_ns: u64, then_ns: u64) -> String {
    let seconds = now_ns.saturating_sub(then_ns) / 1_000_000_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}
