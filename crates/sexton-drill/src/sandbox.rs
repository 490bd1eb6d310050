//! Where a drill happens: all that it makes has a place here, and a name that is its own.

use std::fs;
use std::path::{Path, PathBuf};

use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_model::census::Hierarchy;

use crate::error::DrillError;

/// What everything that a drill makes begins with; the process of the drill follows.
pub(crate) const PREFIX: &str = "sexton-drill-";

/// Where the log lies that the churner appends to. Not `/tmp`, which is often a tmpfs: the
/// incident was about pages of a file on a disk.
const FOLDERS: &str = "/var/tmp";

/// The places of one drill.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    /// The memory cgroup that all others are made in.
    pub(crate) cgroup: PathBuf,
    /// Its path inside the hierarchy.
    pub(crate) path: String,
    /// The folder of the log.
    pub(crate) folder: PathBuf,
    hierarchy: Hierarchy,
}

impl Sandbox {
    /// Of the drill that this process runs.
    pub(crate) fn of(drill: u32) -> Result<Self, DrillError> {
        let (mount, hierarchy) = memory_mount()?;
        let name = format!("{PREFIX}{drill}");
        Ok(Self {
            cgroup: mount.join(&name),
            path: format!("/{name}"),
            folder: Path::new(FOLDERS).join(&name),
            hierarchy,
        })
    }

    /// Makes the cgroup and the folder.
    pub(crate) fn make(&self) -> Result<(), DrillError> {
        let make = |path: &Path| fs::create_dir(path).map_err(DrillError::file("make", path));
        make(&self.cgroup)?;
        if self.hierarchy == Hierarchy::V2 {
            let control = self.cgroup.join("cgroup.subtree_control");
            let set = fs::write(&control, "+memory");
            set.map_err(DrillError::file("have the memory controller in", &control))?;
        }
        make(&self.home())?;
        make(&self.folder)
    }

    /// The cgroup that the parts live in.
    pub(crate) fn home(&self) -> PathBuf {
        self.cgroup.join("home")
    }

    /// The log that the churner appends to.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("agent.log")
    }

    /// The statistics that the reader reads: those above the dying ones, and no others, so
    /// that a node that is sick already is not hurt.
    pub(crate) fn statistics(&self) -> Vec<PathBuf> {
        let files = ["memory.stat", "memory.numa_stat"];
        let paths = files.into_iter().map(|file| self.cgroup.join(file));
        paths.filter(|path| path.exists()).collect()
    }
}

/// Moves this process into a cgroup.
pub(crate) fn enter(cgroup: &Path) -> Result<(), DrillError> {
    let path = cgroup.join("cgroup.procs");
    fs::write(&path, "0").map_err(DrillError::file("enter", &path))
}

fn memory_mount() -> Result<(PathBuf, Hierarchy), DrillError> {
    let host = Host::live().map_err(DrillError::Host)?;
    let memory = MemoryHierarchy::find(&host).map_err(DrillError::Host)?;
    let mount = memory.and_then(|memory| Some((memory.mount?, memory.hierarchy)));
    mount.ok_or_else(|| {
        DrillError::NotPossible("the memory controller is not in use, or not mounted".into())
    })
}

/// What drills have left behind: cgroups and folders of theirs, whoever made them. Whoever
/// asks holds the lock, so no drill is under way.
pub(crate) fn leftovers() -> Result<(Vec<PathBuf>, Vec<PathBuf>), DrillError> {
    let (mount, _) = memory_mount()?;
    Ok((ours_in(&mount), ours_in(Path::new(FOLDERS))))
}

fn ours_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let drill = name.and_then(|name| name.strip_prefix(PREFIX));
        let is_number = |drill: &str| drill.parse::<u32>().is_ok();
        drill.is_some_and(is_number) && !path.is_symlink() && path.is_dir()
    };
    let mut ours: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_ours).collect();
    ours.sort();
    ours
}
