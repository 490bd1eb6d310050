//! A node whose files say whatever the input says.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sexton_host::{Entry, Host, Root};

/// Without a good table nothing else would be read; `mounts` is a target of its own.
const MOUNTS: &[u8] = b"\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:22 / /sys rw - sysfs sysfs rw
25 24 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
26 24 0:24 / /sys/kernel/tracing rw - tracefs tracefs rw
";

enum Says {
    /// Every file the same.
    Same(Vec<u8>),
    /// Whatever is asked next, the next of these; then there is nothing any more.
    InTurn(Mutex<VecDeque<Vec<u8>>>),
}

impl Says {
    fn next(&self) -> io::Result<Vec<u8>> {
        let next = match self {
            Self::Same(bytes) => Some(bytes.clone()),
            Self::InTurn(parts) => {
                let mut parts = parts.lock().map_err(|_| io::ErrorKind::Other)?;
                parts.pop_front()
            }
        };
        next.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Root for Says {
    fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
        if path == Path::new("/proc/self/mountinfo") {
            return Ok(MOUNTS.to_vec());
        }
        self.next()
    }

    /// One name a line; those that end with a slash are directories.
    fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
        if let Self::Same(_) = self {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = self.next()?;
        let names = names.split(|byte| *byte == b'\n');
        Ok(names.map(entry).collect())
    }

    fn read_link(&self, _: &Path) -> io::Result<PathBuf> {
        Ok(OsString::from_vec(self.next()?).into())
    }

    fn is_live(&self) -> bool {
        false
    }
}

fn entry(name: &[u8]) -> Entry {
    let directory = name.strip_suffix(b"/");
    Entry {
        name: OsString::from_vec(directory.unwrap_or(name).to_vec()),
        is_dir: directory.is_some(),
    }
}

/// A node all of whose files hold these bytes.
pub(crate) fn saying(bytes: &[u8]) -> Host {
    host(Says::Same(bytes.to_vec()))
}

/// A node whose files and directories hold the parts of these bytes between zero bytes, in
/// the order in which they are looked at.
pub(crate) fn saying_in_turn(bytes: &[u8]) -> Host {
    let parts = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec);
    host(Says::InTurn(Mutex::new(parts.collect())))
}

fn host(says: Says) -> Host {
    Host::new(Box::new(says)).expect("the mount table is good")
}
