//! The directories of a hierarchy of cgroups, within limits.

use std::path::{Path, PathBuf};

use sexton_host::{Host, HostError};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

/// Cgroups that are looked at.
///
/// Chosen: a node of 110 pods, the default of a kubelet, has about 500.
const MAX_LOOKED_AT: usize = 512;

/// How deep: `kubepods.slice/…-burstable.slice/…-pod.slice/cri-….scope`.
const MAX_DEPTH: usize = 4;

/// The directories below `mount`, nearest first. `Err` when not even those can be listed.
pub(crate) fn directories(host: &Host, mount: &Path) -> Result<Vec<PathBuf>, HostError> {
    let mut all = Vec::new();
    let mut level = list(host, mount)?;
    for _ in 0..MAX_DEPTH {
        level.truncate(MAX_LOOKED_AT.saturating_sub(all.len()));
        let below = level
            .iter()
            .flat_map(|directory| list(host, directory).unwrap_or_default());
        let below: Vec<PathBuf> = below.take(MAX_LOOKED_AT).collect();
        all.append(&mut level);
        level = below;
    }
    Ok(all)
}

/// A directory of the hierarchy that is mounted there, as its cgroup.
pub(crate) fn subject(mount: &Path, directory: &Path) -> Subject {
    let below = directory.strip_prefix(mount).unwrap_or(directory);
    let path = Path::new("/").join(below);
    let path = escape(path.as_os_str().as_encoded_bytes());
    Subject::new(SubjectKind::Cgroup, path)
}

pub(crate) fn list(host: &Host, directory: &Path) -> Result<Vec<PathBuf>, HostError> {
    let entries = host
        .list(directory)?
        .into_iter()
        .filter(|entry| entry.is_dir);
    Ok(entries.map(|entry| directory.join(entry.name)).collect())
}
