//! Makes a recording with more than a million samples: the whole machine, for as long as it
//! takes, while it lists and packs files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Samples of each core in a second; the kernel allows 100,000.
const RATE: u32 = 24_000;

/// What the comparison is made with, at least.
const WANTED: u64 = 1_000_000;

/// Work of many different stacks, until it is killed.
struct Work(Child);

impl Work {
    fn start() -> Result<Self> {
        let work = "while :; do find /usr -type f | sort | gzip > /dev/null; done";
        let child = Command::new("setsid")
            .args(["sh", "-c", work])
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start work to record")?;
        Ok(Self(child))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // It leads a session of its own, so this ends what it started, too.
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["--", &group]).status();
        let _ = self.0.wait();
    }
}

/// The recording.
pub(crate) fn record(folder: &Path) -> Result<PathBuf> {
    let data = folder.join("perf.data");
    let n_cores = std::thread::available_parallelism()?.get() as u64;
    let seconds = WANTED.div_ceil(u64::from(RATE) * n_cores) + 2;
    let _work = Work::start()?;
    let status = Command::new("perf")
        .args([
            "record",
            "-q",
            "-a",
            "-g",
            "-m",
            "8M",
            "-F",
            &RATE.to_string(),
            "-o",
        ])
        .arg(&data)
        .args(["--", "sleep", &seconds.to_string()])
        .status()
        .context("cannot start perf: apt-get install linux-perf")?;
    ensure!(status.success(), "perf record failed");
    Ok(data)
}
