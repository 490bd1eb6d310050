//! One core for trouble, and one for whoever watches it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread, and what it starts, on one core until it is dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Moves the calling thread to this core.
    pub fn to(cpu: u32) -> Result<Self> {
        let before = sched_getaffinity(None).context("cannot ask for the cores of this thread")?;
        let mut only = CpuSet::new();
        only.set(cpu as usize);
        sched_setaffinity(None, &only).with_context(|| format!("cannot move to core {cpu}"))?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The thread may have ended its test anyway.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// A process that lets nothing ordinary run on its core, for a known time.
#[derive(Debug)]
pub struct Hog {
    child: Child,
}

impl Hog {
    /// Starts the helper `core_hog` on a core, above all ordinary tasks. Below one second,
    /// because the scheduler takes a core away from such a task after 0.95 s.
    pub fn start(core_hog: &str, cpu: u32, time: Duration) -> Result<Self> {
        Self::start_at(50, core_hog, cpu, time)
    }

    /// The same, at this priority: the higher one runs first.
    pub fn start_at(priority: u8, core_hog: &str, cpu: u32, time: Duration) -> Result<Self> {
        ensure!(time < Duration::from_millis(900), "it would be throttled");
        let (cpu, priority) = (cpu.to_string(), priority.to_string());
        let child = Command::new("taskset")
            .args(["-c", &cpu, "chrt", "-f", &priority, core_hog, "hold"])
            .arg(time.as_millis().to_string())
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start taskset")?;
        Ok(Self { child })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended. On a busy machine it takes its time to begin.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits for its end.
    pub fn join(mut self) -> Result<()> {
        let status = self.child.wait().context("cannot wait for the hog")?;
        ensure!(status.success(), "the hog ended with {status}");
        Ok(())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
