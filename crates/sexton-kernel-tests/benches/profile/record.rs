//! Makes a recording with more than a million samples: the whole machine, for as long as it
//! takes, while each core lists and packs files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::import::{Importer, Sink};
use sexton_profile::symbols::NoSymbols;

/// Samples of each core in a second; the kernel allows 100,000.
const RATE: u32 = 24_000;

/// What the comparison is made with, at least.
const WANTED: u64 = 1_000_000;

/// A virtual machine's timers may be late, and then there are fewer samples: it is tried
/// again for longer, but not for ever.
const MAX_SECONDS: u64 = 120;

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
    let n_cores = std::thread::available_parallelism()?.get();
    let mut seconds = WANTED.div_ceil(u64::from(RATE) * n_cores as u64) + 2;
    loop {
        record_for(&data, n_cores, seconds)?;
        let n_samples = n_samples(&data)?;
        if n_samples >= WANTED {
            return Ok(data);
        }
        seconds = seconds * 3 / 2;
        ensure!(
            seconds <= MAX_SECONDS,
            "perf took {n_samples} samples only, not {WANTED}"
        );
    }
}

fn record_for(data: &Path, n_cores: usize, seconds: u64) -> Result<()> {
    let _work: Vec<Work> = (0..n_cores).map(|_| Work::start()).collect::<Result<_>>()?;
    let status = Command::new("perf")
        .args(["record", "-q", "-a", "-g", "-m", "8M"])
        .args(["-F", &RATE.to_string(), "-o"])
        .arg(data)
        .args(["--", "sleep", &seconds.to_string()])
        .status()
        .context("cannot start perf: apt-get install linux-perf")?;
    ensure!(status.success(), "perf record failed");
    Ok(())
}

/// Counts, and keeps nothing.
struct Counted;

impl Sink for Counted {
    fn sample(&mut self, _: &StackSample, _: &StackTables) {}

    fn wants_stacks(&self) -> bool {
        false
    }
}

fn n_samples(data: &Path) -> Result<u64> {
    let (mut none, mut counted) = (NoSymbols, Counted);
    let report = Importer::new(&mut none, &mut counted).read_file(File::open(data)?)?;
    Ok(report.n_samples)
}
