//! `sexton fix`

mod diagnosis;
mod target;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use sexton_host::{Host, clock, machine};
use sexton_model::census::Census;
use sexton_model::fix::{FixReport, Plan};
use sexton_model::gap::Gap;
use sexton_remedy::journal::{self, Journal};
use sexton_remedy::lock::{self, Lock};
use sexton_remedy::outcome::{self, Outcome};
use sexton_remedy::{Allowance, Consent, Eyes, Fix};
use sexton_report::fix as report;
use sexton_sensors::memcg::{CensusOptions, census};

use crate::cli::Format;
use crate::cli::fix::FixArgs;
use crate::consent;
use crate::exit::Exit;
use crate::signals;

/// Plans, and on consent carries out.
pub fn run(args: &FixArgs) -> Result<Exit> {
    if let Some(file) = &args.undo {
        return undo(file.as_deref(), args.yes);
    }
    let host = Host::live()?;
    // Without a question there is no other way to stop it before it acts.
    let stop = match args.apply && args.yes {
        true => Some(signals::asked_to_stop()?),
        false => None,
    };
    let target = target::choose(args, stop.as_ref())?;
    let mut eyes = LiveEyes { host: &host };
    // Stopping a source takes no census.
    let first = match eyes.census() {
        Ok(census) => Some(census),
        Err(_) if !target.sources.is_empty() => None,
        Err(gap) => return Ok(blind(&gap)),
    };
    let target::Target {
        sources, advice, ..
    } = &target;
    let mut fix = Fix {
        host: &host,
        sources: sources.clone(),
        aim: target.aim(first.as_ref()),
        advice: advice.clone(),
        eyes: &mut eyes,
        allowance: Allowance {
            siblings: args.allow_siblings,
            global: args.allow_global,
        },
    };
    let plan = match fix.plan() {
        Ok(plan) => plan,
        Err(gap) => return Ok(blind(&gap)),
    };
    if !args.apply {
        return show_plan(args, &plan);
    }
    if plan.is_empty() {
        return show_plan(args, &plan);
    }
    apply(args, &mut fix, &plan, stop)
}

fn show_plan(args: &FixArgs, plan: &Plan) -> Result<Exit> {
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Text => {
            report::plan(&mut out, plan)?;
            if !plan.is_empty() && !args.apply {
                writeln!(
                    out,
                    "\nNothing was changed. To do it: the same with --apply"
                )?;
            }
        }
        Format::Json => report::plan_json(&mut out, plan)?,
    }
    Ok(match plan.steps.is_empty() && plan.dying == 0 {
        true => Exit::NothingFound,
        false => Exit::Found,
    })
}

fn apply(
    args: &FixArgs,
    fix: &mut Fix<'_>,
    plan: &Plan,
    stop: Option<Arc<AtomicBool>>,
) -> Result<Exit> {
    let _lock = Lock::take(Path::new(lock::PATH))?;
    if !args.yes {
        report::plan(&mut io::stderr(), plan)?;
    }
    let consent = consent::ask_or_end(args.yes, "carry out this plan")?;
    let stop = match stop {
        Some(stop) => stop,
        None => signals::asked_to_stop()?,
    };
    if stop.load(Ordering::Relaxed) {
        bail!("a signal asked to stop; nothing was changed");
    }
    let mut journal = Journal::new(Path::new(journal::FOLDER));
    let mut err = io::stderr().lock();
    let is_terminal = err.is_terminal();
    let mut tell = |line: &str| {
        if is_terminal {
            // What cannot be shown is not worth an end in the middle of a fix.
            write!(err, "\r\x1b[K{line}")
                .and_then(|()| err.flush())
                .ok();
        }
    };
    let done = fix.carry_out(&consent, &mut journal, &stop, &mut tell);
    tell("");
    let done = match done {
        Ok(done) => done,
        Err(gap) => return Ok(blind(&gap)),
    };
    // First of all: it says how to take back what was done, whatever fails after it.
    let exit = show_report(args, plan, &done);
    if let (Some(path), true) = (&args.reboot_sentinel, done.reboot_advised) {
        sexton_remedy::ask_for_reboot(path, &consent)?;
    }
    keep_outcome(fix, &done, &consent)?;
    exit
}

/// For `sexton reboot-needed`, which is asked later and looks at the whole node.
pub fn keep_outcome(fix: &mut Fix<'_>, done: &FixReport, consent: &Consent) -> Result<()> {
    let dying = fix
        .eyes
        .census()
        .ok()
        .and_then(|census| census.counts.dying);
    let outcome = Outcome {
        boot_id: machine::boot_id(fix.host)?,
        wall_ns: clock::wall_ns(),
        dying,
        still_leaking: done.still_leaking.clone(),
        reboot_advised: done.reboot_advised,
    };
    Ok(outcome.keep(Path::new(outcome::FILE), consent)?)
}

fn show_report(args: &FixArgs, plan: &Plan, done: &FixReport) -> Result<Exit> {
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Text => report::report(&mut out, done)?,
        Format::Json => report::report_json(&mut out, plan, done)?,
    }
    let is_clean = done.after == Some(0) && done.still_leaking.is_none();
    let failed = done
        .steps
        .iter()
        .any(|step| step.outcome.name() == "failed");
    Ok(match (failed, is_clean) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::NothingFound,
        (false, false) => Exit::Found,
    })
}

fn undo(file: Option<&Path>, yes: bool) -> Result<Exit> {
    let file = match file {
        Some(file) => PathBuf::from(file),
        None => journal::newest(Path::new(journal::FOLDER))?,
    };
    let changes = journal::read(&file)?;
    let _lock = Lock::take(Path::new(lock::PATH))?;
    let (n, shown) = (changes.len(), file.display());
    writeln!(io::stderr(), "Taking back {n} of {shown}.")?;
    let consent = consent::ask_or_end(yes, "take that back")?;
    let undone = sexton_remedy::undo(&file, &consent)?;
    let mut out = io::stdout().lock();
    let mut all = true;
    for undone in undone {
        match undone.trouble {
            None => writeln!(out, "{}", undone.what)?,
            Some(trouble) => {
                all = false;
                writeln!(out, "not {}: {trouble}", undone.what)?;
            }
        }
    }
    Ok(if all {
        Exit::NothingFound
    } else {
        Exit::Failed
    })
}

fn blind(gap: &Gap) -> Exit {
    eprintln!("sexton: {}", gap.text);
    if let Some(remedy) = &gap.remedy {
        eprintln!("to see it: {remedy}");
    }
    Exit::Blind
}

/// Counts dying cgroups of this node.
pub struct LiveEyes<'a> {
    pub host: &'a Host,
}

impl Eyes for LiveEyes<'_> {
    fn census(&mut self) -> Result<Census, Gap> {
        census(self.host, CensusOptions::default())
    }
}
