//! `sexton diagnose --last 12h` and `--at '03:12'`: answers from the agent's ring.
//!
//! The findings log says what was found and when; of the ring only a window around the gravest
//! of it is judged again, so that the answer costs the same however long the ring is.

mod instant;
mod lives;
mod time;

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sexton_agent::ask;
use sexton_analysis::live::reach;
use sexton_analysis::{Policy, judge};
use sexton_host::{Host, clock, machine, process};
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::timeline::Records;
use sexton_model::wall::WallClock;
use sexton_report::diagnosis::{self as report, Judged};
use sexton_store::{Bundle, Ring};

use super::agent::config::Config;
use crate::cli::{DiagnoseArgs, DiagnoseFormat};
use crate::{judge as judging, terminal};
pub use lives::{Lived, lived_between};

/// What is judged: as far back as most rules look, and what led to it.
const BEFORE: Duration = Duration::from_secs(900);

/// How long after the time of `--at` the findings of that time may open.
const AFTER: Duration = Duration::from_secs(300);

/// What holds until it changes is looked for this far back, and where the boot began.
const STATES: Duration = Duration::from_secs(2 * 3600);
pub const BEGINNING: Duration = Duration::from_secs(120);

/// The folder of the agent's ring: the agent is asked, or else its configuration.
pub fn ring_of(socket: &Path) -> Result<PathBuf> {
    if let Ok(status) = ask(socket) {
        return Ok(status.ring);
    }
    let ring = Config::read(None)?.ring;
    if !ring.join("boots").is_dir() {
        bail!(
            "no agent answers on {} and there is no ring in {}; start one with `sexton agent`, or \
             name its socket with --agent",
            socket.display(),
            ring.display()
        );
    }
    Ok(ring)
}

/// Whether the ring is asked instead of the node.
pub fn is_asked(args: &DiagnoseArgs) -> bool {
    args.last.is_some() || args.at.is_some()
}

/// Judges what the ring holds of the time that was asked for, and writes it.
pub fn run(out: &mut dyn Write, args: &DiagnoseArgs, policy: &Policy) -> Result<Judged> {
    let ring = Ring::at(&ring_of(&args.agent.socket)?);
    let now_ns = clock::wall_ns();
    let asked = match (&args.last, &args.at) {
        (_, Some(at)) => {
            let at_ns = time::of_day(at, now_ns).map_err(anyhow::Error::msg)?;
            let before = u64::try_from(reach::USUAL.as_nanos())?;
            at_ns.saturating_sub(before)..=at_ns + u64::try_from(AFTER.as_nanos())?
        }
        (last, None) => {
            let last = last.unwrap_or(BEFORE);
            now_ns.saturating_sub(u64::try_from(last.as_nanos())?)..=now_ns
        }
    };
    let lives = lived_between(&ring, &asked)?;
    let mut judged = match gravest(&lives) {
        Some(lived) => {
            let end = instant::fullest(lived, &lives);
            judge_window(&Bundle::open(&lived.bundle)?, end, policy)?
        }
        None => judge_quiet(&ring, &asked, policy)?,
    };
    forget_what_ended(&mut judged, &Host::live()?);
    match args.format.format() {
        DiagnoseFormat::Text => {
            lives::text(out, &lives, &asked)?;
            report::screen(out, &judged, terminal::canvas())?;
        }
        DiagnoseFormat::Json => json(out, &judged, &lives)?,
        DiagnoseFormat::Html => report::html(out, &judged)?,
    }
    Ok(judged)
}

/// Drops what to type about processes that have ended since: their numbers may be others' now.
fn forget_what_ended(judged: &mut Judged, host: &Host) {
    let is_of_this_boot = machine::boot_id(host).is_ok_and(|id| id == judged.node.boot_id);
    let Some(end) = judged.diagnosis.window.as_ref().map(|window| *window.end()) else {
        return;
    };
    let is_there = |pid| process::started(host, pid).is_some_and(|started| started <= end);
    for finding in &mut judged.diagnosis.findings {
        let is_good = |pid| is_of_this_boot && is_there(pid);
        finding
            .remedies
            .retain(|remedy| remedy.pid.is_none_or(is_good));
    }
}

/// The gravest of what was found, the latest of those.
fn gravest(lives: &[Lived]) -> Option<&Lived> {
    let grave = lives
        .iter()
        .filter(|lived| lived.life.worst > Severity::Note);
    grave.max_by_key(|lived| (lived.life.worst, lived.last_seen_ns))
}

/// Nothing was found: judges the end of the time that was asked for.
fn judge_quiet(ring: &Ring, asked: &RangeInclusive<u64>, policy: &Policy) -> Result<Judged> {
    for boot in ring.boots()?.iter().rev() {
        // One that was damaged must not keep the others from being asked.
        let Ok(bundle) = Bundle::open(&boot.records) else {
            continue;
        };
        let Some(span) = bundle.span() else { continue };
        let clock = clock_of(&bundle);
        let wall = |moment: Moment| clock.ns(moment).and_then(|ns| u64::try_from(ns).ok());
        let (Some(from), Some(to)) = (wall(*span.start()), wall(*span.end())) else {
            continue;
        };
        if from <= *asked.end() && to >= *asked.start() {
            let later = to.saturating_sub(*asked.end());
            let end = Moment::from_ns(span.end().as_ns().saturating_sub(later));
            return judge_window(&bundle, end, policy);
        }
    }
    bail!("the ring holds nothing of that time")
}

/// Judges the end of a bundle: what an agent's page shows of its ring.
pub fn judge_end(folder: &Path, policy: &Policy) -> Result<Judged> {
    let bundle = Bundle::open(folder)?;
    let end = bundle.span().context("nothing is recorded yet")?;
    judge_window(&bundle, *end.end(), policy)
}

/// Judges a quarter of an hour that ends at a moment, and what was said before it and holds.
fn judge_window(bundle: &Bundle, end: Moment, policy: &Policy) -> Result<Judged> {
    let from = before(end, BEFORE);
    let states = reach::states();
    let first = bundle.span().map_or(from, |span| *span.start());
    let beginning = first..=bundle.created().after(BEGINNING).min(from);
    let recent = before(from, STATES)..=from;
    let mut records: Vec<Record> = Vec::new();
    for window in [beginning, recent] {
        if window.start() < window.end() {
            let told = bundle.stream(Some(window), Some(&states));
            records.extend(told.filter(|record| record.fact().is_some()));
        }
    }
    records.dedup();
    records.extend(bundle.stream(Some(from..=end), None));
    let records = Records::new(records);
    Ok(Judged {
        node: judging::node_of(bundle).described_by(&records),
        clock: clock_of(bundle),
        diagnosis: judge(&records, policy),
    })
}

/// The wall clock as it was last noted, near the end of a bundle.
fn clock_of(bundle: &Bundle) -> WallClock {
    let Some(span) = bundle.span() else {
        return WallClock::default();
    };
    let facts = [&sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS];
    let near_end = before(*span.end(), BEGINNING)..=*span.end();
    WallClock::of(&bundle.load(Some(near_end), Some(&facts)))
}

fn before(moment: Moment, time: Duration) -> Moment {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Moment::from_ns(moment.as_ns().saturating_sub(ns))
}

/// The diagnosis as ever, and the lives under `history`.
fn json(out: &mut dyn Write, judged: &Judged, lives: &[Lived]) -> Result<()> {
    let mut text = Vec::new();
    report::json(&mut text, judged)?;
    let mut value: serde_json::Value = serde_json::from_slice(&text)?;
    value["history"] = lives.iter().map(Lived::json).collect();
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)?;
    Ok(())
}
