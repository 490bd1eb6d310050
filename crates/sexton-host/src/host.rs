use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};

use crate::error::HostError;
use crate::ethtool::Ethtool;
use crate::kernel_log::KernelLog;
use crate::mounts::MountTable;
use crate::root::{Entry, LiveRoot, Root};
use crate::stream::Stream;

/// The first place to look: everything else is found through the mount table.
const MOUNT_TABLE: &str = "/proc/self/mountinfo";

/// A file that is larger is refused, so that a runaway or hostile one cannot eat
/// the memory of a node in trouble.
///
/// Chosen: a hundred times the largest file that we read (the list of 300
/// containers of one store is 150 KB). Not a limit of the kernel or a runtime.
pub const READ_LIMIT_BYTES: u64 = 16 << 20;

/// The mount table may be larger: the kernel allows 100,000 mounts by default, each
/// of them up to a page of options, and without the table nothing is seen at all.
const MOUNT_TABLE_LIMIT_BYTES: u64 = 256 << 20;

/// A node, as far as its files tell.
pub struct Host {
    root: Box<dyn Root>,
    mounts: MountTable,
}

impl Host {
    /// The node that sexton runs on.
    pub fn live() -> Result<Self, HostError> {
        Self::new(Box::new(LiveRoot))
    }

    /// The node whose files are behind `root`.
    pub fn new(root: Box<dyn Root>) -> Result<Self, HostError> {
        let path = Path::new(MOUNT_TABLE);
        let table = read(root.as_ref(), path, MOUNT_TABLE_LIMIT_BYTES)?;
        let mounts = MountTable::parse(&table).map_err(|what| HostError::Malformed {
            path: path.to_owned(),
            what,
        })?;
        Ok(Self { root, mounts })
    }

    /// The node whose files are behind `root` and which has not booted: nothing is mounted
    /// there, so nothing of a kernel can be asked.
    pub fn unbooted(root: Box<dyn Root>) -> Self {
        Self {
            root,
            mounts: MountTable::default(),
        }
    }

    /// The files themselves, for readers that go beyond whole files and lists.
    pub fn root(&self) -> &dyn Root {
        self.root.as_ref()
    }

    /// Whether this is the running system.
    pub fn is_live(&self) -> bool {
        self.root.is_live()
    }

    /// What is mounted where.
    pub fn mounts(&self) -> &MountTable {
        &self.mounts
    }

    /// The whole content of a file of at most [`READ_LIMIT_BYTES`].
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, HostError> {
        read(self.root.as_ref(), path.as_ref(), READ_LIMIT_BYTES)
    }

    /// The same, in place of what `content` held.
    pub fn read_into(
        &self,
        path: impl AsRef<Path>,
        content: &mut Vec<u8>,
    ) -> Result<(), HostError> {
        let path = path.as_ref();
        self.root
            .read_into(path, READ_LIMIT_BYTES, content)
            .map_err(|source| unread(path, READ_LIMIT_BYTES, source))
    }

    /// The content of a file that is text; what is not UTF-8 is replaced.
    pub fn read_text(&self, path: impl AsRef<Path>) -> Result<String, HostError> {
        Ok(String::from_utf8_lossy(&self.read(path)?).into_owned())
    }

    /// Hands over a text line by line, without holding all of it.
    pub fn each_line(
        &self,
        path: impl AsRef<Path>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), HostError> {
        self.each_line_while(path, |line| {
            each(line);
            true
        })
    }

    /// The same until `each` says that it has enough.
    pub fn each_line_while(
        &self,
        path: impl AsRef<Path>,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), HostError> {
        let path = path.as_ref();
        let failed = |source| unread(path, READ_LIMIT_BYTES, source);
        let mut text = self.root.open(path, READ_LIMIT_BYTES).map_err(failed)?;
        let mut line = Vec::new();
        while text.read_until(b'\n', &mut line).map_err(failed)? > 0 {
            if !each(line.strip_suffix(b"\n").unwrap_or(&line)) {
                break;
            }
            line.clear();
        }
        Ok(())
    }

    /// The entries of a directory, by name.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<Entry>, HostError> {
        let path = path.as_ref();
        let mut entries = self.root.list(path).map_err(|source| HostError::Read {
            path: path.to_owned(),
            source,
        })?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Where a symbolic link points to.
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, HostError> {
        let path = path.as_ref();
        self.root.read_link(path).map_err(|source| HostError::Read {
            path: path.to_owned(),
            source,
        })
    }

    /// Opens a file that never ends, such as a log of the kernel. Only a running node
    /// has those.
    pub fn open_stream(&self, path: impl AsRef<Path>) -> Result<Stream, HostError> {
        let path = path.as_ref();
        if !self.is_live() {
            return Err(HostError::NotLive(path.display().to_string()));
        }
        Stream::open(path)
    }

    /// The kernel's log as syslog(2) gives it. Only a running node has one.
    pub fn kernel_log(&self) -> Result<KernelLog, HostError> {
        if !self.is_live() {
            return Err(HostError::NotLive("the kernel log".into()));
        }
        KernelLog::open()
    }

    /// A way to ask the drivers of network devices. Only a running node has those.
    pub fn ethtool(&self) -> Result<Ethtool, HostError> {
        if !self.is_live() {
            return Err(HostError::NotLive("statistics of drivers".into()));
        }
        Ethtool::open()
    }

    /// By which path a Unix socket of a running node can be connected to, links resolved.
    pub fn socket(&self, path: impl AsRef<Path>) -> Result<PathBuf, HostError> {
        let path = path.as_ref();
        self.root.socket(path).map_err(|source| HostError::Read {
            path: path.to_owned(),
            source,
        })
    }

    /// A path below the place where procfs is mounted.
    pub fn proc(&self, below: &str) -> Result<PathBuf, HostError> {
        let mount = self
            .mounts
            .of_type("proc")
            .ok_or(HostError::NotMounted("procfs"))?;
        Ok(mount.point.join(below))
    }

    /// A path below the place where sysfs is mounted.
    pub fn sys(&self, below: &str) -> Result<PathBuf, HostError> {
        let mount = self
            .mounts
            .of_type("sysfs")
            .ok_or(HostError::NotMounted("sysfs"))?;
        Ok(mount.point.join(below))
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("is_live", &self.is_live())
            .finish_non_exhaustive()
    }
}

fn read(root: &dyn Root, path: &Path, limit_bytes: u64) -> Result<Vec<u8>, HostError> {
    root.read(path, limit_bytes)
        .map_err(|source| unread(path, limit_bytes, source))
}

fn unread(path: &Path, limit_bytes: u64, source: io::Error) -> HostError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::FileTooLarge => HostError::TooLarge { path, limit_bytes },
        _ => HostError::Read { path, source },
    }
}
