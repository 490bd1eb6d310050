//! Where the memory controller is on this node, and what its files say.
//!
//! cgroup v1, v2 and hybrids of both, other mount points, bind mounts of a part,
//! and cgroup namespaces are all found from the mount table and this process's
//! own place; nothing is assumed to be at `/sys/fs/cgroup`.

pub mod by_id;
pub mod survey;

use std::cmp::Reverse;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use sexton_model::census::Hierarchy;

use crate::mounts::Mount;
use crate::{Host, HostError};

/// The inode number of the first cgroup namespace (`PROC_CGROUP_INIT_INO` in
/// include/linux/proc_ns.h), which is part of the kernel's interface.
const FIRST_NAMESPACE: &str = "cgroup:[4026531835]";

/// The hierarchy that the memory controller is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryHierarchy {
    /// Its kind.
    pub hierarchy: Hierarchy,
    /// Where its directories can be seen; `None` when it is not mounted here.
    pub mount: Option<PathBuf>,
    /// The path inside the hierarchy of what is mounted there, `/` for all of it.
    pub part: PathBuf,
    /// Why the directories seen there are not all; `None` when they are.
    pub narrowed_by: Option<String>,
}

impl MemoryHierarchy {
    /// Finds it. `Ok(None)` when the kernel has no memory controller in use.
    pub fn find(host: &Host) -> Result<Option<Self>, HostError> {
        let own = host.read_text(host.proc("self/cgroup")?)?;
        if is_on_v1(&own) {
            let mount = best(host, |mount| {
                mount.fs_type == "cgroup" && mount.has_option("memory")
            });
            return Ok(Some(Self::at(host, Hierarchy::V1, mount)));
        }
        let mount = best(host, |mount| mount.fs_type == "cgroup2");
        let is_seen = match mount {
            Some(mount) => has_memory(host, &mount.point)?,
            None => false,
        };
        // A part of the hierarchy need not have the controller that the whole has,
        // and a new kernel may have it without a row.
        let is_in_use = is_seen || Controller::memory(host)?.is_some_and(|row| row.enabled);
        Ok(is_in_use.then(|| Self::at(host, Hierarchy::V2, mount)))
    }

    fn at(host: &Host, hierarchy: Hierarchy, mount: Option<&Mount>) -> Self {
        let narrowed_by = mount.and_then(|mount| {
            if mount.root != Path::new("/") && levels_above(mount) == 0 {
                return Some(format!(
                    "{} shows only {} of the hierarchy",
                    mount.point.display(),
                    mount.root.display()
                ));
            }
            in_namespace(host).then(|| "this process is in a cgroup namespace".to_owned())
        });
        Self {
            hierarchy,
            mount: mount.map(|mount| mount.point.clone()),
            part: mount.map_or_else(|| "/".into(), |mount| mount.root.clone()),
            narrowed_by,
        }
    }

    /// The path inside the hierarchy of a directory that its mount shows.
    pub fn path_of(&self, directory: &Path) -> Vec<u8> {
        let mount = self.mount.as_deref().unwrap_or(Path::new("/"));
        let below = directory.strip_prefix(mount).unwrap_or(directory);
        // A cgroup namespace calls what lies above it `/..`, which names nothing.
        let is_named = !self.part.components().any(|c| c == Component::ParentDir);
        let part = if is_named { &self.part } else { Path::new("/") };
        // Joining nothing would add a slash at the end.
        let path = part.iter().chain(below).collect::<PathBuf>();
        path.into_os_string().into_vec()
    }
}

/// Whether `/proc/self/cgroup` has the memory controller in a hierarchy of its own.
fn is_on_v1(own: &str) -> bool {
    let controllers = own.lines().filter_map(|line| line.split(':').nth(1));
    controllers
        .flat_map(|list| list.split(','))
        .any(|controller| controller == "memory")
}

/// The mount that shows most: all of the hierarchy rather than a part, and more
/// than the namespace that this process is in rather than only that.
fn best(host: &Host, wanted: impl Fn(&Mount) -> bool) -> Option<&Mount> {
    let mounts = host.mounts().iter().filter(|mount| wanted(mount));
    mounts.min_by_key(|mount| {
        let parts = mount.root.components().count();
        (Reverse(levels_above(mount)), parts)
    })
}

/// How far above the root of our cgroup namespace a mount begins. One that is older
/// than the namespace has `/../..` as its root; whether that is the top of the
/// hierarchy cannot be told from inside.
fn levels_above(mount: &Mount) -> usize {
    let parts = mount.root.components();
    let mut levels = 0;
    for part in parts.filter(|part| *part != Component::RootDir) {
        if part != Component::ParentDir {
            return 0;
        }
        levels += 1;
    }
    levels
}

fn in_namespace(host: &Host) -> bool {
    let link = host
        .proc("self/ns/cgroup")
        .and_then(|path| host.read_link(path));
    link.is_ok_and(|link| link != Path::new(FIRST_NAMESPACE))
}

fn has_memory(host: &Host, mount: &Path) -> Result<bool, HostError> {
    let controllers = host.read_text(mount.join("cgroup.controllers"))?;
    Ok(controllers
        .split_whitespace()
        .any(|controller| controller == "memory"))
}

/// A row of `/proc/cgroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Live and dying cgroups of its hierarchy. On v2 all controllers share it.
    pub n_cgroups: u64,
    /// Whether the kernel was told to do without it.
    pub enabled: bool,
}

impl Controller {
    /// The row of the memory controller. Kernels built without its v1 part leave
    /// it out from about 6.11 on, so `None` says nothing about v2.
    pub fn memory(host: &Host) -> Result<Option<Self>, HostError> {
        let path = host.proc("cgroups")?;
        let table = host.read_text(&path)?;
        let Some(row) = table.lines().find_map(|line| line.strip_prefix("memory\t")) else {
            return Ok(None);
        };
        let fields: Vec<&str> = row.split('\t').collect();
        let parsed = match fields[..] {
            [_, n_cgroups, enabled] => n_cgroups
                .parse()
                .ok()
                .zip(enabled.trim().parse::<u8>().ok()),
            _ => None,
        };
        let (n_cgroups, enabled) = parsed.ok_or_else(|| HostError::Malformed {
            path,
            what: format!("row memory is {row:?}"),
        })?;
        Ok(Some(Self {
            n_cgroups,
            enabled: enabled != 0,
        }))
    }
}

/// What `cgroup.stat` of a v2 directory says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupStat {
    /// Live cgroups below it.
    pub n_descendants: u64,
    /// Dying cgroups below it.
    pub n_dying: u64,
    /// Live memory states at and below it, where the kernel counts them.
    pub n_memory: Option<u64>,
    /// Dying memory states at and below it, where the kernel counts them.
    pub n_dying_memory: Option<u64>,
}

impl CgroupStat {
    /// Reads it.
    pub fn read(host: &Host, directory: &Path) -> Result<Self, HostError> {
        let path = directory.join("cgroup.stat");
        let text = host.read_text(&path)?;
        let field = |name: &str| -> Option<u64> {
            let line = text
                .lines()
                .find(|line| line.split(' ').next() == Some(name))?;
            line.split(' ').nth(1)?.parse().ok()
        };
        let missing = |name: &str| HostError::Malformed {
            path: path.clone(),
            what: format!("it has no {name}"),
        };
        Ok(Self {
            n_descendants: field("nr_descendants").ok_or_else(|| missing("nr_descendants"))?,
            n_dying: field("nr_dying_descendants")
                .ok_or_else(|| missing("nr_dying_descendants"))?,
            n_memory: field("nr_subsys_memory"),
            n_dying_memory: field("nr_dying_subsys_memory"),
        })
    }

    /// Dying memory cgroups at and below, as well as this kernel can tell.
    pub fn dying(&self) -> u64 {
        self.n_dying_memory.unwrap_or(self.n_dying)
    }
}

/// How many directories there are at and below `top`, and how many of them could
/// not be listed.
pub fn count_directories(host: &Host, top: &Path) -> Result<(u64, u64), HostError> {
    let (mut count, mut unread) = (1, 0);
    let mut queue = vec![top.to_owned()];
    host.list(top)?;
    while let Some(directory) = queue.pop() {
        match host.list(&directory) {
            Ok(entries) => {
                let below = entries.into_iter().filter(|entry| entry.is_dir);
                queue.extend(below.map(|entry| directory.join(entry.name)));
            }
            // Removed since its parent was listed: it is no longer live.
            Err(HostError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                count -= 1;
            }
            Err(_) => unread += 1,
        }
        count += 1;
    }
    Ok((count - 1, unread))
}

/// How many directories there are at and below `top`, and whether that is all of them:
/// counting ends at `most`, or where one could not be listed.
pub fn count_directories_until(
    host: &Host,
    top: &Path,
    most: u64,
) -> Result<(u64, bool), HostError> {
    let mut queue = vec![top.to_owned()];
    host.list(top)?;
    let (mut count, mut is_all) = (0, true);
    while let Some(directory) = queue.pop() {
        if count >= most {
            return Ok((count, false));
        }
        match host.list(&directory) {
            Ok(entries) => {
                count += 1;
                let below = entries.into_iter().filter(|entry| entry.is_dir);
                queue.extend(below.map(|entry| directory.join(entry.name)));
            }
            // Removed since its parent was listed: it is no longer live.
            Err(error) if error.is_absent() => {}
            // It is there, and so may be others below it.
            Err(_) => (count, is_all) = (count + 1, false),
        }
    }
    Ok((count, is_all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(part: &str, directory: &str, expected: &str) {
        let memory = MemoryHierarchy {
            hierarchy: Hierarchy::V2,
            mount: Some("/run/part".into()),
            part: part.into(),
            narrowed_by: None,
        };
        let path = memory.path_of(Path::new(directory));
        assert_eq!(String::from_utf8_lossy(&path), expected);
    }

    #[test]
    fn a_directory_is_named_by_its_place_in_the_whole_hierarchy() {
        check("/", "/run/part", "/");
        check("/", "/run/part/a.slice/b", "/a.slice/b");
        check("/system.slice", "/run/part", "/system.slice");
        check("/system.slice", "/run/part/b", "/system.slice/b");
        check("/../other", "/run/part/b", "/b");
    }
}
