//! Which statistics of memory cgroups a process has open. A stack shows that the kernel walks the
//! cgroups below one, and not below which one.
//!
//! Source: `/proc/PID/fd`, only of processes that had a fair part of a core in the kernel.
//! Blind to: files that are read between two looks; processes outside of our PID namespace.

use std::collections::BTreeSet;
use std::path::Path;

use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_model::text::escape;

/// Open files of a process that are looked at.
const MAX_FILES: usize = 1024;
/// Files that are told of one process.
const MAX_TOLD: usize = 16;

/// Where statistics of memory cgroups are.
pub(super) struct Statistics(Option<MemoryHierarchy>);

impl Statistics {
    pub(super) fn find(host: &Host) -> Self {
        let memory = MemoryHierarchy::find(host).ok().flatten();
        // What is the root of a part is not the root of all.
        Self(memory.filter(|memory| memory.narrowed_by.is_none()))
    }

    /// Adds those that a process has open now, as paths in the hierarchy.
    pub(super) fn note(&self, host: &Host, pid: u32, known: &mut BTreeSet<String>) {
        let Some(memory) = &self.0 else { return };
        let (Some(mount), Ok(folder)) = (&memory.mount, host.proc(&format!("{pid}/fd"))) else {
            return;
        };
        let files = host.list(&folder).unwrap_or_default().into_iter();
        for file in files.take(MAX_FILES) {
            let open = folder.join(file.name);
            let Ok(path) = host.read_link(&open) else {
                continue;
            };
            let is_told = is_statistics(&path) && path.starts_with(mount);
            if is_told && known.len() < MAX_TOLD && is_same(host, &open, &path) {
                known.insert(escape(&memory.path_of(&path)));
            }
        }
    }
}

/// Whether the path leads to the same file here. A container has only its own cgroup at that place.
fn is_same(host: &Host, open: &Path, path: &Path) -> bool {
    let (open, path) = (host.root().inode(open), host.root().inode(path));
    open.ok().is_some_and(|open| path.ok() == Some(open))
}

/// `memory.stat` and `memory.numa_stat`.
fn is_statistics(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("memory.") && name.ends_with("stat"))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use sexton_host::{Entry, Root};

    use super::*;

    /// A node with cgroup v1 and one process that has some files open.
    struct OneReader;

    /// The last one is of a container, at whose root is another cgroup.
    const OPEN: [&str; 6] = [
        "/dev/null",
        "/sys/fs/cgroup/memory/memory.numa_stat",
        "/sys/fs/cgroup/memory/docker/a/memory.stat",
        "/sys/fs/cgroup/memory/docker/memory.usage_in_bytes",
        "/srv/memory.stat",
        "/sys/fs/cgroup/memory/memory.stat",
    ];

    impl Root for OneReader {
        fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
            let text = match path.to_str().expect("plain") {
                "/proc/self/mountinfo" => {
                    "22 1 0:5 / /proc rw - proc proc rw\n\
                     30 1 0:9 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                }
                "/proc/self/cgroup" => "5:memory:/\n",
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            Ok(text.into())
        }
        fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
            if path != Path::new("/proc/7/fd") {
                return Err(io::ErrorKind::NotFound.into());
            }
            let entry = |n: usize| Entry {
                name: n.to_string().into(),
                is_dir: false,
            };
            Ok((0..OPEN.len()).map(entry).collect())
        }
        fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
            let number = path.strip_prefix("/proc/7/fd").ok();
            let number = number.and_then(|number| number.to_str()?.parse::<usize>().ok());
            let open = number.and_then(|number| OPEN.get(number));
            open.map(PathBuf::from)
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        }
        fn inode(&self, path: &Path) -> io::Result<u64> {
            let number = path.strip_prefix("/proc/7/fd").ok();
            let number = number.and_then(|number| number.to_str()?.parse().ok());
            let of_path = || OPEN.iter().take(5).position(|open| path == Path::new(open));
            let found = number.or_else(|| of_path().map(|n| n as u64));
            Ok(found.unwrap_or(1))
        }
        fn is_live(&self) -> bool {
            false
        }
    }

    #[test]
    fn open_statistics_are_told_by_their_cgroup() {
        let host = Host::new(Box::new(OneReader)).expect("a mount table");
        let statistics = Statistics::find(&host);
        let mut known = BTreeSet::new();
        statistics.note(&host, 7, &mut known);
        // One that is gone has none.
        statistics.note(&host, 8, &mut known);
        let told: Vec<&str> = known.iter().map(String::as_str).collect();
        assert_eq!(told, ["/docker/a/memory.stat", "/memory.numa_stat"]);
    }
}
