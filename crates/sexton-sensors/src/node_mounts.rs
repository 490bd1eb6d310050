//! Files of the node where sexton has mounts of its own.
//!
//! A unit with `ProtectSystem=` and `ProtectHome=` has all filesystems read-only and some folders
//! empty, and a container has others than its node. The first process has those of the node.

use std::path::{Path, PathBuf};

use sexton_host::{Host, HostError};

/// A process by its folder in procfs.
const OURS: &str = "self";
const FIRST: &str = "1";

/// The folder of the process whose mounts are those of the node, as far as we may see them.
pub(crate) fn whose(host: &Host) -> Result<PathBuf, HostError> {
    let namespace = |process: &str| -> Result<Option<PathBuf>, HostError> {
        let path = host.proc(process)?.join("ns/mnt");
        Ok(host.read_link(path).ok())
    };
    let process = match (namespace(OURS)?, namespace(FIRST)?) {
        (Some(ours), Some(first)) if ours != first => FIRST,
        _ => OURS,
    };
    host.proc(process)
}

/// Where this process reaches a path of that one.
pub(crate) fn reached_at(whose: &Path, path: &Path) -> PathBuf {
    match whose.ends_with(FIRST) {
        true => whose
            .join("root")
            .join(path.strip_prefix("/").unwrap_or(path)),
        false => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_first_process_are_reached_through_it() {
        let check = |whose: &str, path: &str, expected: &str| {
            let reached = reached_at(Path::new(whose), Path::new(path));
            assert_eq!(reached, Path::new(expected));
        };
        check("/proc/self", "/srv", "/srv");
        check("/proc/1", "/srv", "/proc/1/root/srv");
        check("/proc/1", "/", "/proc/1/root/");
    }
}
