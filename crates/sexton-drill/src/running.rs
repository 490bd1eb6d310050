//! A drill under way.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use sexton_remedy::Consent;

use crate::clean::{Cleaned, clear, sweep};
use crate::core_choice::stay_off;
use crate::error::DrillError;
use crate::parts::{FAR, JANITOR, Orders, PARTS, Part, READY};
use crate::plan::Plan;
use crate::sandbox::Sandbox;

/// Held while a drill is under way, so that there is one at a time.
const LOCK: &str = "/run/sexton-drill.lock";

/// Where programs write to the kernel's log.
const LOG: &str = "/dev/kmsg";

/// When the line about a stuck device is written: after the watchdog of a driver would
/// have barked, and while there is time left to see it.
const BARK_AFTER: Duration = Duration::from_secs(6);

/// The part of the time in which dying cgroups are made.
const CHURN_PART: f64 = 0.7;

/// A drill under way. Ending it, dropping it or killing it clears everything up.
#[derive(Debug)]
pub struct Drill {
    sandbox: Sandbox,
    parts: Vec<(&'static Part, Child)>,
    janitor: Option<(Child, ChildStdin)>,
    began: Instant,
    has_barked: bool,
    leftovers: Cleaned,
    _lock: File,
}

impl Drill {
    /// Begins. `program` is this very program, which runs the parts when it is given
    /// `words` and the words of a part.
    pub fn start(
        consent: &Consent,
        plan: &Plan,
        program: &Path,
        words: &[&str],
    ) -> Result<Self, DrillError> {
        let lock = lock()?;
        let leftovers = sweep(consent)?;
        let drill = std::process::id();
        let orders = Orders {
            drill,
            core: plan.core,
            n_dying: plan.options.n_dying,
            time: plan.options.time.mul_f64(CHURN_PART),
        };
        // What this process starts besides the parts must be able to run.
        stay_off(plan.core)?;
        let sandbox = Sandbox::of(drill)?;
        let start = |part: &'static Part, input| spawn(program, words, part, &orders, input);
        let mut janitor = start(&JANITOR, Stdio::piped())?;
        let input = janitor.stdin.take();
        let janitor_gone = || part_failed(&JANITOR, "has no input".into());
        let mut drill = Self {
            janitor: Some((janitor, input.ok_or_else(janitor_gone)?)),
            sandbox,
            parts: Vec::new(),
            began: Instant::now(),
            has_barked: false,
            leftovers,
            _lock: lock,
        };
        drill.sandbox.make()?;
        for part in PARTS {
            let child = start(part, Stdio::null())?;
            drill.parts.push((part, child));
            drill.await_ready()?;
        }
        drill.began = Instant::now();
        Ok(drill)
    }

    /// The path of the memory cgroup that all happens in.
    pub fn cgroup(&self) -> &str {
        &self.sandbox.path
    }

    /// What earlier drills had left behind, which is gone now.
    pub fn leftovers(&self) -> &Cleaned {
        &self.leftovers
    }

    /// To be called a few times a second: does what is due, and says when a part is gone.
    pub fn tick(&mut self) -> Result<(), DrillError> {
        if !self.has_barked && self.began.elapsed() >= BARK_AFTER {
            self.has_barked = true;
            bark()?;
        }
        for (part, child) in &mut self.parts {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(part_failed(part, format!("ended with {status}")));
            }
        }
        let gone = self
            .janitor
            .as_mut()
            .and_then(|(child, _)| child.try_wait().ok().flatten());
        match gone {
            Some(status) => Err(part_failed(&JANITOR, format!("ended with {status}"))),
            None => Ok(()),
        }
    }

    /// Ends it and clears up. An error says what is left.
    pub fn end(mut self) -> Result<(), DrillError> {
        self.end_now()
    }

    fn end_now(&mut self) -> Result<(), DrillError> {
        for (_, child) in &mut self.parts {
            // Both fail for a part that has ended, which is what we want.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.parts.clear();
        let Some((mut janitor, input)) = self.janitor.take() else {
            return Ok(());
        };
        drop(input);
        match janitor.wait() {
            Ok(status) if status.success() => Ok(()),
            // It was killed, or could not; what it left is for us.
            _ => clear(&self.sandbox),
        }
    }

    /// Waits for the word of the part that was started last.
    fn await_ready(&mut self) -> Result<(), DrillError> {
        let Some((part, child)) = self.parts.last_mut() else {
            return Ok(());
        };
        ready(part, child)
    }
}

impl Drop for Drill {
    fn drop(&mut self) {
        // What could not be cleared is cleared by the next drill.
        let _ = self.end_now();
    }
}

fn lock() -> Result<File, DrillError> {
    let path = PathBuf::from(LOCK);
    let options = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .clone();
    let file = options
        .open(&path)
        .map_err(DrillError::file("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(_) => Err(DrillError::Running(path)),
    }
}

fn spawn(
    program: &Path,
    words: &[&str],
    part: &'static Part,
    orders: &Orders,
    input: Stdio,
) -> Result<Child, DrillError> {
    let mut child = Command::new(program)
        .args(words)
        .args(orders.words(part))
        .stdin(input)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(DrillError::file("start", program))?;
    if part.name == JANITOR.name {
        ready(part, &mut child)?;
    }
    Ok(child)
}

/// Waits until a part says that it is at work. It says more on its error output.
fn ready(part: &'static Part, child: &mut Child) -> Result<(), DrillError> {
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        let read = BufReader::new(output).read_line(&mut line);
        read.map_err(DrillError::file("read from", part.name.as_ref()))?;
    }
    match line.trim() == READY {
        true => Ok(()),
        false => Err(part_failed(part, "could not begin".into())),
    }
}

fn part_failed(part: &'static Part, how: String) -> DrillError {
    DrillError::Part {
        part: part.name,
        how,
    }
}

/// Writes what a stuck device would have the kernel write, and in front of it what it is.
fn bark() -> Result<(), DrillError> {
    let lines = [
        "<5>sexton drill: a rehearsal; the next line is part of it, no device was reset".into(),
        format!("<4>NETDEV WATCHDOG: {FAR} (veth): transmit queue 0 timed out 5000 ms"),
    ];
    let path = Path::new(LOG);
    for line in lines {
        // Each through a file of its own: the kernel limits how much one may write.
        let log = OpenOptions::new().write(true).open(path);
        let mut log = log.map_err(DrillError::file("open", path))?;
        log.write_all(format!("{line}\n").as_bytes())
            .map_err(DrillError::file("write to", path))?;
    }
    Ok(())
}
