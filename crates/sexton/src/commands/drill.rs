//! `sexton drill`: rehearses the founding incident, and cleans up.

use std::io::{self, Write};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use sexton_drill::{Consent, Drill, Options, Plan};
use sexton_host::Host;
use sexton_model::census::{Census, Method, State};
use sexton_sensors::memcg::{CensusOptions, census};

use crate::cli::{DrillArgs, DrillPartArgs};
use crate::consent;
use crate::exit::Exit;
use crate::signals;

/// How often a drill is looked after.
const BEAT: Duration = Duration::from_millis(100);

/// How long the watch goes on after the drill has begun to end: nothing more happens then.
const LEAD: Duration = Duration::from_secs(2);

/// Time for a judgement after its watch.
const JUDGING: Duration = Duration::from_secs(60);

/// The kernel frees the last dying ones by and by.
const PATIENCE: Duration = Duration::from_secs(15);

/// Does the work of one part of a drill, as its process.
pub fn run_part(args: &DrillPartArgs) -> Result<Exit> {
    sexton_drill::run_part(&args.words)?;
    Ok(Exit::NothingFound)
}

/// Shows the plan, asks, rehearses, clears up.
pub fn run(args: &DrillArgs) -> Result<Exit> {
    let plan = Plan::make(Options {
        n_dying: args.dying,
        time: args.time,
    })?;
    // Listened for before anything is made, so that nothing is left by a signal.
    let stop = signals::asked_to_stop()?;
    let Some(consent) = agreed(args, &plan)? else {
        return Ok(Exit::NothingFound);
    };
    let program = std::env::current_exe().context("cannot find this program")?;
    let drill = Drill::start(&consent, &plan, &program, &["drill-part"])?;
    let mut tell = io::stderr();
    for place in &drill.leftovers().places {
        writeln!(tell, "cleared what a killed drill had left: {place}")?;
    }
    let cgroup = drill.cgroup().to_owned();
    writeln!(tell, "the drill is under way in {cgroup}")?;
    let outcome = rehearse(drill, args, &stop);
    let left = left_below(&cgroup);
    match left {
        Some(0) => writeln!(
            tell,
            "all of it is undone: no dying memory cgroup of it is left"
        )?,
        Some(n) => writeln!(
            tell,
            "the kernel still holds {n} dying memory cgroups of it"
        )?,
        None => writeln!(
            tell,
            "all of it is undone; whether a dying one is left cannot be seen here"
        )?,
    }
    outcome
}

/// The plan on the terminal, and a yes; `None` when it is a no.
fn agreed(args: &DrillArgs, plan: &Plan) -> Result<Option<Consent>> {
    let mut out = io::stderr();
    writeln!(out, "This drill will, on this machine:")?;
    for line in plan.lines() {
        writeln!(out, "- {line}")?;
    }
    let consent = consent::ask(args.yes, "start this drill")?;
    if consent.is_none() {
        writeln!(out, "nothing was done")?;
    }
    Ok(consent)
}

/// Looks after the drill until its time is up, and the watch beside it until it has judged.
fn rehearse(mut drill: Drill, args: &DrillArgs, stop: &AtomicBool) -> Result<Exit> {
    let mut watch = args.diagnose.then(|| watch(args)).transpose()?;
    let began = Instant::now();
    let mut failure = None;
    while began.elapsed() < args.time && !stop.load(Ordering::Relaxed) {
        if let Err(error) = drill.tick() {
            failure = Some(error);
            break;
        }
        thread::sleep(BEAT);
    }
    let ended = drill.end();
    let judged = watch.as_mut().map(|watch| watch.finish(stop)).transpose()?;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    ended?;
    Ok(judged.unwrap_or(Exit::NothingFound))
}

/// `sexton diagnose`, as a process of its own: what it sees is what anyone would see.
struct Watch(Child);

fn watch(args: &DrillArgs) -> Result<Watch> {
    let format = args.format.format().to_possible_value();
    let mut command = Command::new(std::env::current_exe()?);
    let seconds = args.time.saturating_sub(LEAD).as_secs().max(1);
    command.args(["diagnose", "--for", &format!("{seconds}s")]);
    if let Some(format) = &format {
        command.args(["--format", format.get_name()]);
    }
    if let Some(folder) = &args.output {
        command.arg("--output").arg(folder);
    }
    Ok(Watch(command.spawn().context("cannot start the watch")?))
}

impl Watch {
    /// Waits for its verdict, whose exit code is ours.
    fn finish(&mut self, stop: &AtomicBool) -> Result<Exit> {
        let until = Instant::now() + JUDGING;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return match status.code() {
                    Some(0) => Ok(Exit::NothingFound),
                    Some(1) => Ok(Exit::Found),
                    Some(3) => Ok(Exit::Blind),
                    _ => bail!("the watch ended with {status}"),
                };
            }
            if stop.load(Ordering::Relaxed) || Instant::now() >= until {
                bail!("the watch was ended before it had judged");
            }
            thread::sleep(BEAT);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Dying memory cgroups below the drill's own; `None` when they cannot be named here.
fn left_below(cgroup: &str) -> Option<usize> {
    let host = Host::live().ok()?;
    let until = Instant::now() + PATIENCE;
    loop {
        let census = census(&host, CensusOptions::default()).ok()?;
        let n = dying_below(&census, cgroup)?;
        if n == 0 || Instant::now() >= until {
            return Some(n);
        }
        thread::sleep(BEAT);
    }
}

fn dying_below(census: &Census, cgroup: &str) -> Option<usize> {
    if census.method != Method::BpfWalk {
        return None;
    }
    let is_ours = |path: Vec<u8>| path.starts_with(cgroup.as_bytes());
    let dying = census
        .tree
        .iter()
        .filter(|(_, one)| one.state == State::Dying);
    Some(
        dying
            .filter(|(ix, _)| is_ours(census.tree.path(*ix)))
            .count(),
    )
}
