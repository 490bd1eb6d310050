//! Tasks that sleep because their cgroup is frozen, as that of a paused container is.
//!
//! Source: `freezer.state` of cgroup v1. Such tasks show state D: in `__refrigerator`, or since
//! Linux 6.1 in whatever they slept in when they were frozen. Those of cgroup v2 show state S.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sexton_host::Host;
use sexton_host::process::Place;

/// The hierarchy of the freezer, and what was read of it.
#[derive(Debug, Default)]
pub(super) struct Freezer {
    /// Where it is mounted, and which part of it.
    mount: Option<(PathBuf, PathBuf)>,
    frozen: HashMap<Vec<u8>, bool>,
}

impl Freezer {
    pub(super) fn new(host: &Host) -> Self {
        let mut mounts = host.mounts().iter();
        let mount = mounts.find(|mount| mount.fs_type == "cgroup" && mount.has_option("freezer"));
        Self {
            mount: mount.map(|mount| (mount.point.clone(), mount.root.clone())),
            frozen: HashMap::new(),
        }
    }

    /// Whether this task is in a cgroup all of which is frozen. While some of it is not yet,
    /// one of its tasks may hang, and any may be it.
    pub(super) fn holds(&mut self, host: &Host, tid: u32) -> bool {
        let Some((point, root)) = &self.mount else {
            return false;
        };
        let places = Place::read_all(host, tid).unwrap_or_default();
        let Some(place) = places.into_iter().find(|place| place.is_of("freezer")) else {
            return false;
        };
        if let Some(known) = self.frozen.get(&place.path) {
            return *known;
        }
        let path = Path::new(OsStr::from_bytes(&place.path));
        let below = path.strip_prefix(root).ok();
        let state = below.and_then(|below| {
            let file = point.join(below).join("freezer.state");
            host.read_text(file).ok()
        });
        let is_frozen = state.is_some_and(|state| state.trim() == "FROZEN");
        self.frozen.insert(place.path, is_frozen);
        is_frozen
    }
}
