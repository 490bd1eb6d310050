//! A disk that writes as slowly as a test wants, for the processes of one cgroup.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use sexton_host::Host;

/// A folder on the disk, and a cgroup that may be let write little to it. Both are gone when this
/// is dropped.
#[derive(Debug)]
pub struct SlowDisk {
    folder: PathBuf,
    cgroup: PathBuf,
    device: String,
}

impl SlowDisk {
    /// Makes a folder below `place`, and a cgroup whose writes to the disk that it is on can
    /// be made slow.
    pub fn new(place: &Path) -> Result<Self> {
        let name = format!("sexton-test-slow-{}", std::process::id());
        let host = Host::live()?;
        let is_blkio = |mount: &&sexton_host::mounts::Mount| {
            mount.fs_type == "cgroup" && mount.has_option("blkio")
        };
        let mount = host.mounts().iter().find(is_blkio);
        let mount = mount.context("there is no hierarchy of cgroup v1 that limits writes")?;
        let disk = Self {
            folder: place.join(&name),
            cgroup: mount.point.join(&name),
            device: device_of(place)?,
        };
        fs::create_dir_all(&disk.folder)?;
        fs::create_dir(&disk.cgroup)?;
        Ok(disk)
    }

    /// Where to write to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a command in that cgroup.
    pub fn start(&self, command: &Command) -> Result<Child> {
        let mut slow = Command::new("sh");
        slow.args(["-c", "echo 0 > \"$0\"/cgroup.procs && exec \"$@\""])
            .arg(&self.cgroup)
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::null());
        if let Some(folder) = command.get_current_dir() {
            slow.current_dir(folder);
        }
        slow.spawn().context("cannot start sh")
    }

    /// From now on so many bytes in a second are written for it; 0 is no limit.
    pub fn limit(&self, bytes_per_second: u64) -> Result<()> {
        let path = self.cgroup.join("blkio.throttle.write_bps_device");
        let line = format!("{} {bytes_per_second}", self.device);
        fs::write(&path, &line)
            .with_context(|| format!("cannot write {line:?} to {}", path.display()))
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = self.limit(0);
        let _ = fs::remove_dir_all(&self.folder);
        // A process that has just ended may be in it for another moment.
        for _ in 0..100 {
            if fs::remove_dir(&self.cgroup).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The disk that a folder is on. Limits are of disks, not of their parts.
fn device_of(folder: &Path) -> Result<String> {
    let device = fs::metadata(folder)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let own = format!("/sys/dev/block/{major}:{minor}");
    let is_part = Path::new(&own).join("partition").exists();
    let whole = if is_part { format!("{own}/..") } else { own };
    let text = fs::read_to_string(Path::new(&whole).join("dev"));
    let text = text.with_context(|| format!("{} is on no disk", folder.display()))?;
    Ok(text.trim().to_owned())
}
