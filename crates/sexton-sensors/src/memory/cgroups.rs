//! What the files of a memory cgroup say: cgroup v1 or v2.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::process::Place;
use sexton_model::census::Hierarchy;
use sexton_model::sight::Sight;

use crate::pressure::psi::Psi;

/// On v1 a cgroup without a limit has the largest number of pages, in bytes.
const NO_LIMIT: u64 = 1 << 62;

/// What one memory cgroup says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) used: u64,
    pub(super) limit: Option<u64>,
    /// Times it reached its limit, since it was made.
    pub(super) hits: u64,
    /// Microseconds in which a task of it waited for memory.
    pub(super) stalled_us: Option<u64>,
}

/// Where memory cgroups are.
pub(super) struct Cgroups {
    is_v2: bool,
    mount: PathBuf,
    part: PathBuf,
}

impl Cgroups {
    /// `None` where no memory cgroup can be seen.
    pub(super) fn find(host: &Host) -> Option<Self> {
        let memory = MemoryHierarchy::find(host).ok()??;
        Some(Self {
            is_v2: memory.hierarchy == Hierarchy::V2,
            mount: memory.mount?,
            part: memory.part,
        })
    }

    /// The path of a process's memory cgroup.
    pub(super) fn path_of<'a>(&self, places: &'a [Place]) -> Option<&'a [u8]> {
        let controller = if self.is_v2 { "" } else { "memory" };
        let place = places.iter().find(|place| place.is_of(controller))?;
        Some(&place.path)
    }

    /// What the cgroup of a path says; `None` when it is gone or not below the mount. The root
    /// has no limit, and nothing to say.
    pub(super) fn read(&self, host: &Host, path: &[u8]) -> Option<State> {
        let path = Path::new(OsStr::from_bytes(path));
        let below = path.strip_prefix(&self.part).ok()?;
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if below.as_os_str().is_empty() || !below.components().all(is_plain) {
            return None;
        }
        let folder = self.mount.join(below);
        match self.is_v2 {
            true => read_v2(host, &folder),
            false => read_v1(host, &folder),
        }
    }
}

fn number(host: &Host, folder: &Path, name: &str) -> Option<u64> {
    host.read_text(folder.join(name)).ok()?.trim().parse().ok()
}

fn read_v1(host: &Host, folder: &Path) -> Option<State> {
    let limit = number(host, folder, "memory.limit_in_bytes")?;
    Some(State {
        used: number(host, folder, "memory.usage_in_bytes")?,
        limit: Some(limit).filter(|limit| *limit < NO_LIMIT),
        hits: number(host, folder, "memory.failcnt")?,
        stalled_us: None,
    })
}

fn read_v2(host: &Host, folder: &Path) -> Option<State> {
    // `memory.high` makes tasks wait as much as `memory.max` does.
    let limits = ["memory.max", "memory.high"].map(|name| number(host, folder, name));
    // Before 5.2 there is only the count of the whole subtree.
    let events = ["memory.events.local", "memory.events"];
    let mut events = events.iter().map(|name| host.read_text(folder.join(name)));
    let events = events.find_map(Result::ok)?;
    let pressure = host.read(folder.join("memory.pressure")).ok();
    Some(State {
        used: number(host, folder, "memory.current")?,
        limit: limits.into_iter().flatten().min(),
        hits: hits(&events),
        stalled_us: pressure
            .and_then(|file| Psi::parse(&file))
            .map(|psi| psi.some.total_us),
    })
}

/// Times that a limit was reached, by `memory.events`.
pub(super) fn hits(events: &str) -> u64 {
    let lines = events.lines().filter_map(|line| line.split_once(' '));
    let own = lines.filter(|(name, _)| ["max", "high"].contains(name));
    let values = own.filter_map(|(_, value)| value.trim().parse::<u64>().ok());
    values.fold(0, u64::saturating_add)
}

pub(super) fn examine(host: &Host, what: &'static str) -> Sight {
    match Cgroups::find(host) {
        Some(Cgroups { is_v2: true, .. }) => Sight::sees(what, "by memory cgroup and process"),
        Some(_) => Sight::sees(what, "by process, and cgroups that reach their limit (v1)"),
        None => Sight::blind(what, "no memory cgroup can be seen: only processes").partly(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_were_reached() {
        assert_eq!(hits("low 9\nhigh 2\nmax 40\noom 1\n"), 42);
        assert_eq!(hits("max x\n"), 0);
        assert_eq!(hits(""), 0);
    }
}
