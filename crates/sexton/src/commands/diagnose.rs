//! `sexton diagnose`: watch, then judge what was kept.
//!
//! A live run is judged from its bundle and from nothing else, so that the bundle alone
//! gives the same answer anywhere.

mod progress;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sexton_agent::{Member, Recorder};
use sexton_analysis::Policy;
use sexton_host::Host;
use sexton_model::diagnosis::State;
use sexton_report::diagnosis::{self as report, Judged};
use sexton_sensors::{ON_REQUEST, SENSORS, SensorSpec, unit_files};
use sexton_store::Limits;

use self::progress::Display;
use super::{history, incidents};
use crate::cli::{DiagnoseArgs, DiagnoseFormat};
use crate::exit::Exit;
use crate::{judge, policy, signals, terminal};

/// How often the lines on the terminal are renewed.
const BEAT: Duration = Duration::from_millis(250);

/// The most that a watch keeps: hours of a large node.
const MAX_BYTES: u64 = 1 << 30;

/// Looks of the census in one watch, so that growth can be told: three points at least.
const N_CENSUSES: u32 = 4;

/// Sensors that look more rarely than a watch lasts, and how often they look in one all the same:
/// what begins after the first look is seen too.
const RARE: [&str; 2] = ["filesystems", "limits"];
const N_LOOKS: u32 = 4;

/// A census walks all memory cgroups; in a short watch it is not taken more often.
const SHORTEST_CENSUS: Duration = Duration::from_secs(5);

/// Watches, or opens a recording; judges; writes the judgement.
pub fn run(args: &DiagnoseArgs) -> Result<Exit> {
    args.btf.apply()?;
    // Before the watch: a mistake in it should not cost half a minute.
    let mut policy = policy::read(args.policy.as_deref())?.rules;
    let signatures = args.signatures.read()?;
    policy.judge_with(signatures);
    if history::is_asked(args) {
        let mut out = BufWriter::new(io::stdout().lock());
        let judged = history::run(&mut out, args, &policy)?;
        out.flush()?;
        return Ok(exit(&judged));
    }
    let judged = match args.bundle() {
        Some(folder) => judge::bundle(&incidents::path_of(folder), &policy)?,
        None => {
            let watch = Watch {
                time: args.time,
                more: if args.ask_numa_stat { ON_REQUEST } else { &[] },
                output: args.output.as_deref(),
                is_quiet: args.quiet,
                stop: None,
            };
            watch.judge(&policy)?
        }
    };
    write(args, &judged)?;
    Ok(exit(&judged))
}

fn write(args: &DiagnoseArgs, judged: &Judged) -> Result<()> {
    if args.format.format() == DiagnoseFormat::Text {
        let mut text = Vec::new();
        match args.full {
            true => report::text(&mut text, judged, terminal::canvas())?,
            false => report::screen(&mut text, judged, terminal::canvas())?,
        }
        return terminal::show(&text, !args.no_pager);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match args.format.format() {
        DiagnoseFormat::Html => report::html(&mut out, judged)?,
        DiagnoseFormat::Json | DiagnoseFormat::Text => report::json(&mut out, judged)?,
    }
    Ok(out.flush()?)
}

fn exit(judged: &Judged) -> Exit {
    match judged.diagnosis.state {
        State::CauseFound | State::SymptomsOnly => Exit::Found,
        State::Healthy => Exit::NothingFound,
        State::Blind => Exit::Blind,
    }
}

/// How a node is watched before it is judged.
#[derive(Default)]
pub struct Watch<'a> {
    /// For how long.
    pub time: Duration,
    /// Sensors besides the usual ones.
    pub more: &'a [&'static SensorSpec],
    /// The folder to keep the recording in; without one it is thrown away.
    pub output: Option<&'a Path>,
    /// Shows no progress.
    pub is_quiet: bool,
    /// Ends it; without one, signals do, and a second one ends the process.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Watch<'_> {
    /// Watches, and judges what was seen.
    pub fn judge(&self, policy: &Policy) -> Result<Judged> {
        match self.output {
            Some(folder) => {
                refuse_to_mix(folder)?;
                self.record(folder, policy)?;
                judge::bundle(folder, policy)
            }
            None => {
                let temporary = tempfile::Builder::new()
                    .prefix("sexton-")
                    .tempdir()
                    .context("cannot make a temporary folder")?;
                let folder = temporary.path().join("node.bundle");
                self.record(&folder, policy)?;
                judge::bundle(&folder, policy)
            }
        }
    }

    /// Records with every sensor until the time is up or a signal comes.
    fn record(&self, folder: &Path, policy: &Policy) -> Result<()> {
        let stop = match &self.stop {
            Some(stop) => Arc::clone(stop),
            None => signals::asked_to_stop_or_made_to()?,
        };
        let host = Arc::new(Host::live()?);
        let limits = Limits::ring(MAX_BYTES, Duration::from_secs(7 * 86_400));
        let mut members = members(self.time, self.more);
        let asked = unit_files::opener(&policy.signatures().units);
        Member::set_opener(&mut members, unit_files::NAME, &asked);
        let mut recorder = Recorder::start(&host, &members, folder, limits)?;
        let mut display = Display::new(&members, self.time, folder, policy, self.is_quiet);
        let began = Instant::now();
        while !stop.load(Ordering::Relaxed) && began.elapsed() < self.time {
            let left = self.time.saturating_sub(began.elapsed());
            display.show(recorder.step(left.min(BEAT))?)?;
        }
        recorder.finish()?;
        Ok(display.clear()?)
    }
}

/// A watch is judged by itself, not together with an older recording.
fn refuse_to_mix(folder: &Path) -> Result<()> {
    let is_used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        bail!(
            "{} is not empty: choose another folder, or judge it with --from",
            folder.display()
        );
    }
    Ok(())
}

/// All sensors; the census as often as its growth needs, and the rare ones several times.
fn members(time: Duration, more: &[&'static SensorSpec]) -> Vec<Member> {
    let census = (time / N_CENSUSES).max(SHORTEST_CENSUS);
    let mut members: Vec<Member> = SENSORS
        .iter()
        .chain(more)
        .map(|spec| Member::new(spec))
        .collect();
    for member in &mut members {
        if member.spec.name == "memcg" {
            member.every = member.every.min(census);
        }
        if RARE.contains(&member.spec.name) {
            member.every = member.every.min(time / N_LOOKS);
        }
    }
    members
}
