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

use crate::job;

/// Where `cargo xtask test kernel` says that the tree of a small Debian is.
pub const ROOTFS: &str = "SEXTON_TEST_ROOTFS";

const OUTER: &str = include_str!("systemd/outer.sh");
const INNER: &str = include_str!("systemd/inner.sh");
const SWEEP: &str = include_str!("systemd/sweep.sh");

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
        let rootfs = std::env::var_os(ROOTFS).with_context(|| format!("{ROOTFS} is not set"))?;
        let mut systemd = Self::furnished(units, programs, job)?;
        systemd.boot(Path::new(&rootfs), first)?;
        systemd.wait(within, &mut |_| ())?;
        Ok(systemd)
    }

    /// Boots the tree `rootfs`, and tells what the job adds to its file `progress`. What the
    /// job has left is there also when it failed.
    pub fn play(
        rootfs: &Path,
        programs: &[impl AsRef<Path>],
        job: &str,
        within: Duration,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(Self, Result<()>)> {
        let mut systemd = Self::furnished(&[], programs, job)?;
        systemd.boot(rootfs, "systemd")?;
        let done = systemd.wait(within, tell);
        Ok((systemd, done))
    }

    fn furnished(units: &[(&str, &str)], programs: &[impl AsRef<Path>], job: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sexton-test-{}-systemd{n}", std::process::id());
        let systemd = Self {
            folder: std::env::temp_dir().join(&name),
            name,
            child: None,
        };
        fs::create_dir_all(systemd.folder.join("work"))?;
        fs::create_dir_all(systemd.folder())?;
        job::furnish(&systemd.folder(), units, programs, job)?;
        Ok(systemd)
    }

    /// What the job sees as `/job`; gone with this.
    pub fn folder(&self) -> PathBuf {
        self.folder.join("job")
    }

    /// A file that the job has written.
    pub fn read(&self, name: &str) -> Result<String> {
        let path = self.folder().join(name);
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

    fn boot(&mut self, rootfs: &Path, first: &str) -> Result<()> {
        // If we are killed, it must not go on without us.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--mount"])
            .args(["sh", "-c", OUTER, "outer", &self.name])
            .arg(self.folder.join("work"))
            .arg(rootfs)
            .arg(self.folder())
            .arg(first)
            .env("INNER", INNER)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start setpriv, of util-linux")?;
        self.child = Some(child);
        Ok(())
    }

    fn wait(&mut self, within: Duration, tell: &mut dyn FnMut(&str)) -> Result<()> {
        let until = Instant::now() + within;
        let mut n_told = 0;
        while self.is_running()? {
            if Instant::now() > until {
                let console = self.read("console").unwrap_or_default();
                bail!("the job was not done within {within:?}; the console says {console:?}");
            }
            let progress = self.read("progress").unwrap_or_default();
            let lines = progress
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'));
            lines
                .clone()
                .skip(n_told)
                .for_each(|line| tell(line.trim_end()));
            n_told = lines.count();
            thread::sleep(Duration::from_millis(20));
        }
        ensure!(
            self.folder().join(job::DONE).exists(),
            "the job failed; the console says {:?}",
            self.read("console").unwrap_or_default()
        );
        Ok(())
    }

    fn is_running(&mut self) -> Result<bool> {
        let child = self.child.as_mut().context("nothing was booted")?;
        Ok(child.try_wait()?.is_none())
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // With it dies the first process of the namespace, and with that all others.
            child.kill().ok();
            child.wait().ok();
        }
        // Files that are gone hold no dying cgroup any more.
        fs::remove_dir_all(self.folder()).ok();
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
