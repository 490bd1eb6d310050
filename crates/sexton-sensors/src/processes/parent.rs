//! Who a parent is, and what its defunct children take from its limits.

use std::path::{Path, PathBuf};

use sexton_host::Host;
use sexton_host::mounts::Mount;
use sexton_host::process::Place;
use sexton_model::fact::process::DefunctChildren;
use sexton_model::text::escape;

use super::piles::Pile;
use crate::tasks::{self, Belongs};

/// What is known of a parent. One that has gone since keeps its number.
pub(super) fn describe(host: &Host, pile: &Pile) -> DefunctChildren {
    let places = Place::read_all(host, pile.parent).unwrap_or_default();
    let home = Belongs::at(&places);
    let limit = places.iter().find_map(|place| task_limit(host, place));
    DefunctChildren {
        pid: pile.parent,
        comm: tasks::comm(host, pile.parent),
        n: pile.n,
        n_lasting: pile.n_lasting,
        oldest_ns: pile.oldest.as_ns(),
        cgroup: home.cgroup,
        unit: home.unit,
        container: home.container,
        pid_max: host
            .proc("sys/kernel/pid_max")
            .ok()
            .and_then(|path| number(host, path)),
        cgroup_tasks: limit.as_ref().map(|limit| limit.tasks),
        cgroup_tasks_max: limit.as_ref().map(|limit| limit.most),
        limited_cgroup: limit.map(|limit| limit.cgroup),
    }
}

/// The tasks of a cgroup, and its limit of them.
struct TaskLimit {
    cgroup: String,
    tasks: u64,
    most: u64,
}

/// That of the nearest cgroup at or above a place that has a limit.
fn task_limit(host: &Host, place: &Place) -> Option<TaskLimit> {
    let mount = host.mounts().iter().find(|mount| is_of(mount, place))?;
    let below = String::from_utf8(place.path.clone()).ok()?;
    let mut cgroup = Path::new(&below);
    loop {
        let folder = mount.point.join(cgroup.strip_prefix("/").ok()?);
        if let Some(most) = number(host, folder.join("pids.max")) {
            return Some(TaskLimit {
                cgroup: escape(cgroup.as_os_str().as_encoded_bytes()),
                tasks: number(host, folder.join("pids.current"))?,
                most,
            });
        }
        cgroup = cgroup.parent()?;
    }
}

/// Whether it shows the whole hierarchy of a place that counts tasks.
fn is_of(mount: &Mount, place: &Place) -> bool {
    let is_kind = match place.controllers.as_str() {
        "" => mount.fs_type == "cgroup2",
        _ => place.is_of("pids") && mount.fs_type == "cgroup" && mount.has_option("pids"),
    };
    is_kind && mount.root == Path::new("/")
}

/// A number in a file; none where it says `max`.
fn number(host: &Host, path: PathBuf) -> Option<u64> {
    host.read_text(path).ok()?.trim().parse().ok()
}
