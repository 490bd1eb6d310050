//! A parent cgroup of our own in which dying cgroups are made, and a folder for
//! the files that pin them. Both are gone when it is dropped, also on failure.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_model::census::Hierarchy;

const PREFIX: &str = "sexton-test-";

/// Nurseries of this process so far.
static N_MADE: AtomicU32 = AtomicU32::new(0);

/// What keeps the dying cgroups alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// A file of its own for each.
    OwnFile,
    /// A page each of one log that all append to.
    SharedLog,
    /// A tmpfs file of its own for each.
    Tmpfs,
    /// A file of its own for each, mapped by a process that stays.
    Mapped,
    /// A file of its own for each, deleted but held open by a process that stays.
    Deleted,
}

impl Pin {
    /// Its name for the leaker.
    pub fn name(self) -> &'static str {
        match self {
            Self::OwnFile => "own-file",
            Self::SharedLog => "shared-log",
            Self::Tmpfs => "tmpfs",
            Self::Mapped => "mapped",
            Self::Deleted => "deleted",
        }
    }
}

/// The parent of everything that one test makes.
#[derive(Debug)]
pub struct Nursery {
    /// Its directory in the memory hierarchy.
    pub cgroup: PathBuf,
    /// Its path below the root of the hierarchy.
    pub path: String,
    /// Files on a disk.
    pub files: PathBuf,
    /// Files on a tmpfs.
    pub tmpfs: PathBuf,
    hierarchy: Hierarchy,
}

impl Nursery {
    /// Makes one. Its path is that of no other: what an earlier one left dying below itself is
    /// not found below this one.
    pub fn new(name: &str) -> Result<Self> {
        let host = Host::live()?;
        let memory = MemoryHierarchy::find(&host)?.context("no memory controller")?;
        let mount = memory
            .mount
            .context("the memory hierarchy is not mounted")?;
        sweep(&mount);
        let serial = N_MADE.fetch_add(1, Ordering::Relaxed);
        let own = format!("{PREFIX}{}-{serial}-{name}", std::process::id());
        let nursery = Self {
            cgroup: mount.join(&own),
            path: format!("/{own}"),
            files: std::env::temp_dir().join(&own),
            tmpfs: Path::new("/dev/shm").join(&own),
            hierarchy: memory.hierarchy,
        };
        fs::create_dir(&nursery.cgroup).context("cannot make a cgroup")?;
        if nursery.hierarchy == Hierarchy::V2 {
            fs::write(nursery.cgroup.join("cgroup.subtree_control"), "+memory")?;
        }
        fs::create_dir(nursery.cgroup.join("home"))?;
        fs::create_dir(&nursery.files)?;
        fs::create_dir(&nursery.tmpfs).context("cannot make a folder on tmpfs")?;
        Ok(nursery)
    }

    /// Makes `n` dying cgroups named `<name>-<i>` and waits until they are made.
    pub fn leak(&self, leaker: &str, name: &str, n: u32, pin: Pin) -> Result<Leak> {
        let mut leak = self.start(leaker, name, n, pin)?;
        leak.wait()?;
        Ok(leak)
    }

    /// Begins to make them.
    pub fn start(&self, leaker: &str, name: &str, n: u32, pin: Pin) -> Result<Leak> {
        self.start_in(&self.cgroup, leaker, name, n, pin)
    }

    /// Begins to make them below a cgroup that has a `home` of its own.
    pub fn start_in(
        &self,
        cgroup: &Path,
        leaker: &str,
        name: &str,
        n: u32,
        pin: Pin,
    ) -> Result<Leak> {
        let files = if pin == Pin::Tmpfs {
            self.tmpfs.as_path()
        } else {
            self.files.as_path()
        };
        // Pages of the program that are cached already are not charged to cgroups of the test.
        let _ = fs::read(leaker);
        let mut child = Command::new(leaker)
            .args([cgroup, files])
            .args([name, &n.to_string(), pin.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {leaker}"))?;
        let stdin = child.stdin.take();
        Ok(Leak { child, stdin })
    }

    /// Makes a live, empty cgroup.
    pub fn keep(&self, name: impl AsRef<OsStr>) -> Result<PathBuf> {
        let directory = self.cgroup.join(name.as_ref());
        fs::create_dir(&directory)?;
        Ok(directory)
    }

    /// Makes a live cgroup with a `home`, below which others can be made.
    pub fn parent(&self, name: impl AsRef<OsStr>) -> Result<PathBuf> {
        let directory = self.keep(name)?;
        if self.hierarchy == Hierarchy::V2 {
            fs::write(directory.join("cgroup.subtree_control"), "+memory")?;
        }
        fs::create_dir(directory.join("home"))?;
        Ok(directory)
    }

    /// Deletes all files, so that what only they pin is released.
    pub fn delete_files(&self) {
        for folder in [&self.files, &self.tmpfs] {
            fs::remove_dir_all(folder).ok();
            fs::create_dir(folder).ok();
        }
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.files).ok();
        fs::remove_dir_all(&self.tmpfs).ok();
        remove(&self.cgroup);
    }
}

/// Removes a cgroup and all below it, and has the kernel let go of its pages.
fn remove(cgroup: &Path) {
    for file in [("memory.force_empty", "0"), ("memory.reclaim", "1G")] {
        let path = cgroup.join(file.0);
        if path.exists() {
            // Either may say that it could not free all, which is fine here.
            fs::write(path, file.1).ok();
        }
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    while remove_once(cgroup).is_err() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
}

fn remove_once(cgroup: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_once(&entry.path())?;
        }
    }
    fs::remove_dir(cgroup)
}

/// Removes what a killed run has left behind.
fn sweep(mount: &Path) {
    let left = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| is_left_behind(path))
            .collect::<Vec<_>>()
    };
    for cgroup in left(mount) {
        remove(&cgroup);
    }
    for folder in left(&std::env::temp_dir())
        .into_iter()
        .chain(left(Path::new("/dev/shm")))
    {
        fs::remove_dir_all(folder).ok();
    }
}

/// Whether it is ours, and the process that made it is gone.
fn is_left_behind(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(OsStr::as_bytes)
        .map(String::from_utf8_lossy)
        .unwrap_or_default();
    let pid = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// A process that makes dying cgroups, then stays to hold what it opened.
#[derive(Debug)]
pub struct Leak {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Leak {
    /// Waits until all are made.
    pub fn wait(&mut self) -> Result<()> {
        let stdout = self
            .child
            .stdout
            .as_mut()
            .context("the leaker has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line.trim() == "ready", "the leaker failed: {line:?}");
        Ok(())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is still at work or holding.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Leak {
    fn drop(&mut self) {
        self.stdin.take();
        // It ends when its input does; if it hangs, it ends now.
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.is_running() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
