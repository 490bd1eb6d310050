//! Clears up after a drill: what it made goes, and with it what that pinned.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sexton_remedy::Consent;

use crate::error::DrillError;
use crate::sandbox::{Sandbox, leftovers};

/// The kernel frees cgroups by and by; after this what is left is told.
const PATIENCE: Duration = Duration::from_secs(15);

/// What was cleared.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// Cgroups and folders that earlier drills had left behind.
    pub places: Vec<String>,
}

/// Clears what drills that were killed have left behind. Only for who holds the lock.
pub fn sweep(_: &Consent) -> Result<Cleaned, DrillError> {
    let (cgroups, folders) = leftovers()?;
    let mut cleaned = Cleaned::default();
    for folder in folders {
        remove_folder(&folder)?;
        cleaned.places.push(folder.display().to_string());
    }
    for cgroup in cgroups {
        remove_cgroup(&cgroup)?;
        cleaned.places.push(cgroup.display().to_string());
    }
    Ok(cleaned)
}

/// Clears what one drill made.
pub(crate) fn clear(sandbox: &Sandbox) -> Result<(), DrillError> {
    // The churner first, or it makes the folder's log again.
    end_all_in(&sandbox.cgroup);
    remove_folder(&sandbox.folder)?;
    remove_cgroup(&sandbox.cgroup)
}

/// Deleting the log frees its pages, dirty or not, and so what they pin.
fn remove_folder(folder: &Path) -> Result<(), DrillError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DrillError::file("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Removes a cgroup, all below it, and the processes in them, which are the drill's own.
fn remove_cgroup(cgroup: &Path) -> Result<(), DrillError> {
    let until = Instant::now() + PATIENCE;
    loop {
        end_all_in(cgroup);
        release(cgroup);
        match remove_tree(cgroup) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= until => {
                return Err(DrillError::file("remove", cgroup)(error));
            }
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Has the kernel let go of pages that are still charged here.
fn release(cgroup: &Path) {
    for (file, word) in [("memory.force_empty", "0"), ("memory.reclaim", "1G")] {
        let path = cgroup.join(file);
        if path.exists() {
            // Either may say that it could not free all, or that it is busy: the log is
            // gone, so nothing that matters is left.
            let _ = fs::write(path, word);
        }
    }
}

fn remove_tree(cgroup: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(cgroup)
}

/// Kills what is in a cgroup of the drill and below it.
fn end_all_in(cgroup: &Path) {
    let procs = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    let pids = procs
        .lines()
        .filter_map(|line| line.trim().parse::<i32>().ok());
    for pid in pids.filter_map(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
    let below = fs::read_dir(cgroup).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        end_all_in(&entry.path());
    }
}
