//! The cheap sign that tasks wait for a core: looking at all processes is worth it only then.

use std::path::{Path, PathBuf};

use sexton_host::{Host, HostError};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::NAME;
use crate::pressure::psi::{Psi, lost};

/// Processes are looked at while tasks wait for a CPU this part of the time.
///
/// Chosen: one task that waits for a quarter of its time has 0.25, the least that CPU003 calls
/// suffering.
const ASKS: f64 = 0.25;

/// Without pressure: runnable tasks for each core, on average, from which on a look is taken.
///
/// Chosen: half, because tasks that may run on some of the cores only wait for these.
const ASKS_RUNNABLE: f64 = 0.5;

/// What one count of a moment weighs in that average: it is one of the last few seconds.
const WEIGHT: f64 = 0.25;

/// The sign.
#[derive(Debug)]
pub(super) enum Sign {
    /// The node's CPU pressure: when it was read, and all time that tasks waited so far.
    Pressure {
        path: PathBuf,
        before: Option<(Moment, u64)>,
    },
    /// Runnable tasks for each core, averaged.
    Runnable {
        path: PathBuf,
        n_cores: f64,
        mean: Option<f64>,
    },
}

impl Sign {
    /// By pressure, where the kernel has it.
    pub(super) fn open(host: &Host) -> Result<Self, Gap> {
        let gap = |error: &HostError| Gap::new(NAME, error.why(), error.chain());
        let path = host.proc("pressure/cpu").map_err(|error| gap(&error))?;
        // Booted with psi=0 the file may be there and refuse to be read.
        if read_pressure(host, &path).is_ok() {
            return Ok(Sign::Pressure { path, before: None });
        }
        let path = host.proc("loadavg").map_err(|error| gap(&error))?;
        read_runnable(host, &path).map_err(|error| gap(&error))?;
        let n_cores = n_cores(host).map_err(|error| gap(&error))?;
        Ok(Sign::Runnable {
            path,
            n_cores: n_cores.max(1) as f64,
            mean: None,
        })
    }

    /// How it is seen, in words.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Sign::Pressure { .. } => "schedstat of processes, while pressure asks for it",
            Sign::Runnable { .. } => "schedstat of processes, while many tasks can run",
        }
    }

    /// Whether processes are to be looked at now.
    pub(super) fn asks(&mut self, host: &Host, out: &mut Sink) -> bool {
        let now = out.now();
        let asked = match self {
            Sign::Pressure { path, before } => read_pressure(host, path).map(|total_us| {
                let earlier = before.replace((now, total_us));
                let ratio = earlier.and_then(|(at, less)| lost(less, total_us, now.since(at)));
                ratio.is_some_and(|ratio| ratio >= ASKS)
            }),
            Sign::Runnable {
                path,
                n_cores,
                mean,
            } => read_runnable(host, path).map(|n| {
                // The reader itself runs.
                let n = n.saturating_sub(1) as f64 / *n_cores;
                let known = mean.map_or(n, |mean| mean + (n - mean) * WEIGHT);
                *mean = Some(known);
                known >= ASKS_RUNNABLE
            }),
        };
        asked.unwrap_or_else(|error| {
            let gap = Gap::new(NAME, error.why(), error.chain());
            out.gap(&Subject::node(), gap);
            false
        })
    }
}

fn read_pressure(host: &Host, path: &Path) -> Result<u64, HostError> {
    let psi = Psi::parse(&host.read(path)?);
    let psi = psi.ok_or_else(|| malformed(path, "it is no pressure file"))?;
    Ok(psi.some.total_us)
}

fn read_runnable(host: &Host, path: &Path) -> Result<u64, HostError> {
    let n = n_runnable(&host.read(path)?);
    n.ok_or_else(|| malformed(path, "it has no number of runnable tasks"))
}

/// The first half of the fourth word: `0.20 0.18 0.12 1/80 11206`.
pub(super) fn n_runnable(loadavg: &[u8]) -> Option<u64> {
    let mut words = std::str::from_utf8(loadavg).ok()?.split_ascii_whitespace();
    let (runnable, _) = words.nth(3)?.split_once('/')?;
    runnable.parse().ok()
}

fn n_cores(host: &Host) -> Result<usize, HostError> {
    let path = host.proc("stat")?;
    let stat = host.read_text(&path)?;
    let of_core = |line: &&str| {
        let number = line.strip_prefix("cpu").unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit())
    };
    match stat.lines().filter(of_core).count() {
        0 => Err(malformed(&path, "it has no line of a core")),
        n => Ok(n),
    }
}

fn malformed(path: &Path, what: &str) -> HostError {
    HostError::Malformed {
        path: path.to_owned(),
        what: what.into(),
    }
}

/// The gap of a look that had to end early.
pub(super) fn left_out(n: u64, what: &str, out: &mut Sink) {
    let text = format!("{n} {what}: a look has a time limit");
    out.gap(&Subject::node(), Gap::new(NAME, Why::Lost(n), text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runnable_tasks_are_in_the_load_average() {
        assert_eq!(n_runnable(b"0.20 0.18 0.12 17/80 11206\n"), Some(17));
        assert_eq!(n_runnable(b"0.20 0.18 0.12 17 11206\n"), None);
        assert_eq!(n_runnable(b"\xff"), None);
    }
}
