//! Paths of cgroups by the ids that the kernel gives them.
//!
//! A process that ran for a millisecond cannot be asked where it was, and in a PID namespace its
//! number means another process. Its cgroup outlives it, and the kernel opens a directory of
//! cgroupfs by its id.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use sexton_model::census::Hierarchy;

use super::{MemoryHierarchy, best};
use crate::Host;

/// `FILEID_KERNFS` in include/linux/exportfs.h, part of the kernel's interface since 5.5: the
/// handle is the id alone.
const KERNFS: libc::c_int = 0xfe;

/// `struct file_handle` with room for an id.
#[repr(C)]
struct Handle {
    bytes: libc::c_uint,
    kind: libc::c_int,
    id: [u8; 8],
}

/// The hierarchies whose cgroups can be opened.
#[derive(Debug)]
pub struct ById {
    memory: Option<Opened>,
    unified: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    hierarchy: MemoryHierarchy,
    root: File,
}

impl ById {
    /// Opens what is mounted here. What is not is no error: ids of it have no path.
    pub fn open(host: &Host) -> Self {
        let memory = MemoryHierarchy::find(host).ok().flatten();
        let memory = memory.filter(|memory| memory.hierarchy == Hierarchy::V1);
        let unified = best(host, |mount| mount.fs_type == "cgroup2");
        let unified = unified.map(|mount| MemoryHierarchy::at(host, Hierarchy::V2, Some(mount)));
        let is_live = host.is_live();
        Self {
            memory: memory.filter(|_| is_live).and_then(Opened::of),
            unified: unified.filter(|_| is_live).and_then(Opened::of),
        }
    }

    /// The path of a cgroup in v2, or else in the v1 hierarchy of the memory controller. `None`
    /// when it is gone, not visible here, or when sexton lacks `CAP_DAC_READ_SEARCH`.
    pub fn path(&self, id: u64, in_v2: bool) -> Option<Vec<u8>> {
        let opened = if in_v2 { &self.unified } else { &self.memory };
        opened.as_ref()?.path(id)
    }
}

impl Opened {
    fn of(hierarchy: MemoryHierarchy) -> Option<Self> {
        let root = File::open(hierarchy.mount.as_deref()?).ok()?;
        Some(Self { hierarchy, root })
    }

    fn path(&self, id: u64) -> Option<Vec<u8>> {
        let directory = open_by_id(&self.root, id).ok()?;
        let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let path = std::fs::read_link(link).ok()?;
        let mount = self.hierarchy.mount.as_deref()?;
        // What lies outside of the mount is shown as `(unreachable)/…`.
        is_below(&path, mount).then(|| self.hierarchy.path_of(&path))
    }
}

fn is_below(path: &Path, mount: &Path) -> bool {
    path.strip_prefix(mount).is_ok()
}

fn open_by_id(root: &File, id: u64) -> io::Result<OwnedFd> {
    let mut handle = Handle {
        bytes: 8,
        kind: KERNFS,
        id: id.to_ne_bytes(),
    };
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let pointer = (&raw mut handle).cast::<libc::file_handle>();
    // SAFETY: `Handle` is laid out as `file_handle` is, `bytes` says how many follow the two
    // integers, and it outlives the call.
    match unsafe { libc::open_by_handle_at(root.as_raw_fd(), pointer, flags) } {
        fd if fd >= 0 => {
            // SAFETY: the kernel has just opened it for us, and nobody else has its number.
            Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_below_the_mount_has_no_path_here() {
        let mount = Path::new("/sys/fs/cgroup/memory");
        assert!(is_below(Path::new("/sys/fs/cgroup/memory/a"), mount));
        assert!(is_below(mount, mount));
        assert!(!is_below(Path::new("/sys/fs/cgroup/memory2/a"), mount));
        assert!(!is_below(Path::new("(unreachable)/a"), mount));
    }

    #[test]
    fn a_node_without_cgroups_has_no_paths() {
        let none = ById {
            memory: None,
            unified: None,
        };
        assert_eq!(none.path(1, true), None);
        assert_eq!(none.path(1, false), None);
    }
}
