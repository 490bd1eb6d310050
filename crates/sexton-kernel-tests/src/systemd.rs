//! A real systemd, booted in namespaces and cgroups of our own: no emulator, about a
//! second. Or just a job in its place, that starts what it wants, container runtimes for
//! one. Its root is an overlay, so the tree below stays as it is; all of it is gone when
//! this is dropped, also on failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Where `cargo xtask test kernel` says that the tree of a small Debian is.
pub const ROOTFS: &str = "SEXTON_TEST_ROOTFS";

const OUTER: &str = include_str!("systemd/outer.sh");
const INNER: &str = include_str!("systemd/inner.sh");
const SWEEP: &str = include_str!("systemd/sweep.sh");

/// The unit that runs the job. What it needs comes with the default target; when it
/// ends, however it ends, so does the machine.
const JOB: [(&str, &str); 2] = [
    (
        "default.target",
        "[Unit]\nRequires=multi-user.target\nAfter=multi-user.target\nWants=job.service\n",
    ),
    (
        "job.service",
        "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\n\
         ExecStart=/bin/sh -e /job/run\nExecStopPost=/bin/systemctl poweroff --force --force\n",
    ),
];

/// What a booted systemd has left in the folder of its job.
#[derive(Debug)]
pub struct Systemd {
    name: String,
    folder: PathBuf,
    child: Option<Child>,
}

impl Systemd {
    /// Boots one with these units and programs, runs the shell script `job` in it as
    /// `/job/run`, and waits until it has powered itself off.
    pub fn run(
        units: &[(&str, &str)],
        programs: &[&str],
        job: &str,
        within: Duration,
    ) -> Result<Self> {
        Self::run_first("systemd", units, programs, job, within)
    }

    /// The same without systemd: the job is the first process, and sees the hierarchies
    /// of cgroups that this machine has.
    pub fn run_bare(programs: &[&str], job: &str, within: Duration) -> Result<Self> {
        Self::run_first("job", &[], programs, job, within)
    }

    fn run_first(
        first: &str,
        units: &[(&str, &str)],
        programs: &[&str],
        job: &str,
        within: Duration,
    ) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sexton-test-{}-systemd{n}", std::process::id());
        let mut systemd = Self {
            folder: std::env::temp_dir().join(&name),
            name,
            child: None,
        };
        systemd.furnish(units, programs, job)?;
        systemd.boot(first)?;
        systemd.wait(within)?;
        Ok(systemd)
    }

    /// A file that the job has written.
    pub fn read(&self, name: &str) -> Result<String> {
        let path = self.folder.join("job").join(name);
        fs::read_to_string(&path).with_context(|| format!("the job left no {name}"))
    }

    /// Copies a folder that the job has made to another place, under a name of its own.
    pub fn keep(&self, name: &str, place: &Path) -> Result<()> {
        let to = place.join(format!("{}-{name}", self.name));
        let done = Command::new("cp")
            .arg("-r")
            .arg(self.folder.join("job").join(name))
            .arg(&to)
            .status()?;
        ensure!(done.success(), "cannot copy {name} to {}", to.display());
        Ok(())
    }

    fn furnish(&self, units: &[(&str, &str)], programs: &[&str], job: &str) -> Result<()> {
        fs::create_dir_all(self.folder.join("work"))?;
        let place = self.folder.join("job");
        fs::create_dir_all(place.join("units"))?;
        for (name, text) in units.iter().chain(&JOB) {
            fs::write(place.join("units").join(name), text)?;
        }
        for program in programs {
            let name = Path::new(program).file_name().context("a program's path")?;
            fs::copy(program, place.join(name))
                .with_context(|| format!("cannot copy {program}"))?;
        }
        fs::write(place.join("run"), format!("cd /job\n{job}\ntouch done\n"))?;
        Ok(())
    }

    fn boot(&mut self, first: &str) -> Result<()> {
        let rootfs = std::env::var_os(ROOTFS).with_context(|| format!("{ROOTFS} is not set"))?;
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", OUTER, "outer", &self.name])
            .arg(self.folder.join("work"))
            .arg(rootfs)
            .arg(self.folder.join("job"))
            .arg(first)
            .env("INNER", INNER)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start unshare, of util-linux")?;
        self.child = Some(child);
        Ok(())
    }

    fn wait(&mut self, within: Duration) -> Result<()> {
        let until = Instant::now() + within;
        let child = self.child.as_mut().context("nothing was booted")?;
        while child.try_wait()?.is_none() {
            if Instant::now() > until {
                let console = self.read("console").unwrap_or_default();
                bail!("the job was not done within {within:?}; the console says {console:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        ensure!(
            self.folder.join("job/done").exists(),
            "the job failed; the console says {:?}",
            self.read("console").unwrap_or_default()
        );
        Ok(())
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // With it dies the first process of the namespace, and with that all others.
            child.kill().ok();
            child.wait().ok();
        }
        let until = Instant::now() + Duration::from_secs(5);
        while !self.sweep() && Instant::now() < until {
            thread::sleep(Duration::from_millis(50));
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

impl Systemd {
    /// Removes the cgroups; not all processes may be gone yet.
    fn sweep(&self) -> bool {
        let swept = Command::new("unshare")
            .args(["--mount", "sh", "-c", SWEEP, "sweep", &self.name])
            .arg(self.folder.join("work"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
        swept.is_ok_and(|status| status.success())
    }
}
