//! The parts of a drill, each a process of its own.

mod churner;
mod janitor;
mod network;
mod reader;

use std::ffi::CString;
use std::io::{self, Write};
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::error::DrillError;
use crate::sandbox::{Sandbox, enter};

/// What a part needs to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Orders {
    /// The process of the drill.
    pub(crate) drill: u32,
    /// The core that is held.
    pub(crate) core: u32,
    /// Dying cgroups to make.
    pub(crate) n_dying: u32,
    /// The time to make them in.
    pub(crate) time: Duration,
}

/// A part.
#[derive(Debug)]
pub(crate) struct Part {
    /// Its name, which is also the name of its process after `drill-`.
    pub(crate) name: &'static str,
    work: fn(&Sandbox, &Orders) -> Result<(), DrillError>,
}

/// All parts but the janitor, in the order they are started.
pub(crate) static PARTS: [&Part; 3] = [&network::PART, &churner::PART, &reader::PART];

pub(crate) use janitor::PART as JANITOR;
pub(crate) use network::FAR;

/// What a part says when it is ready.
pub(crate) const READY: &str = "ready";

/// Does the work of a part: `NAME DRILL CORE N_DYING TIME_MS`, as `Orders::words` has them.
pub fn run(words: &[String]) -> Result<(), DrillError> {
    let wrong = || DrillError::NotPossible("parts of a drill are started by the drill".into());
    let [name, drill, core, n_dying, time_ms] = words else {
        return Err(wrong());
    };
    let number = |word: &String| word.parse::<u32>().map_err(|_| wrong());
    let orders = Orders {
        drill: number(drill)?,
        core: number(core)?,
        n_dying: number(n_dying)?,
        time: Duration::from_millis(number(time_ms)?.into()),
    };
    let all = PARTS.into_iter().chain([&JANITOR]);
    let part = all
        .into_iter()
        .find(|part| part.name == name)
        .ok_or_else(wrong)?;
    take_name(part.name);
    let sandbox = Sandbox::of(orders.drill)?;
    if part.name != JANITOR.name {
        die_with_the_drill(orders.drill)?;
        enter(&sandbox.home())?;
    }
    (part.work)(&sandbox, &orders)
}

impl Orders {
    /// The words that start a part.
    pub(crate) fn words(&self, part: &Part) -> [String; 5] {
        [
            part.name.into(),
            self.drill.to_string(),
            self.core.to_string(),
            self.n_dying.to_string(),
            self.time.as_millis().to_string(),
        ]
    }
}

/// So that it is known from others: stacks and lists of processes show this name.
fn take_name(part: &str) {
    if let Ok(name) = CString::new(format!("drill-{part}")) {
        // Only a name; the drill does its work without it.
        let _ = rustix::thread::set_name(&name);
    }
}

fn die_with_the_drill(drill: u32) -> Result<(), DrillError> {
    let refused = |error: rustix::io::Errno| DrillError::NotPossible(error.to_string());
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(refused)?;
    // It may have died before that took hold.
    let parent = getppid().map(Pid::as_raw_nonzero);
    match parent.is_some_and(|pid| i64::from(pid.get()) == i64::from(drill)) {
        true => Ok(()),
        false => Err(DrillError::NotPossible("the drill has ended".into())),
    }
}

/// Tells the drill that the part is at work.
fn say_ready() -> Result<(), DrillError> {
    let mut out = io::stdout();
    let said = writeln!(out, "{READY}").and_then(|()| out.flush());
    said.map_err(DrillError::file("write to", "the drill".as_ref()))
}
