//! The code of a process: where it is mapped from, and the files behind it, opened as the
//! process itself sees them, in its own mount namespace and after their names are gone.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use sexton_model::census::Device;

use crate::inside::open_inside;
use crate::mounts::parse_device;
use crate::{Host, HostError};

/// A stretch of a process's memory that may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file's inode; 0 when there is no file.
    pub inode: u64,
    /// The file's path in the process's own mount namespace, or `[vdso]` and the like;
    /// empty for memory of no file.
    pub path: Vec<u8>,
    /// Whether the file's name is gone.
    pub is_deleted: bool,
}

impl Mapping {
    /// Those of a process.
    pub fn read_executable(host: &Host, pid: u32) -> Result<Vec<Self>, HostError> {
        let table = host.read(host.proc(&format!("{pid}/maps"))?)?;
        Ok(parse(&table))
    }

    /// Whether a file is behind it.
    pub fn has_file(&self) -> bool {
        self.inode != 0 && self.path.first() == Some(&b'/')
    }
}

/// The executable lines of `/proc/PID/maps`; lines that make no sense are left out.
fn parse(table: &[u8]) -> Vec<Mapping> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (start, end) = text()?.split_once('-')?;
    let is_executable = text()?.as_bytes().get(2) == Some(&b'x');
    let offset = u64::from_str_radix(text()?, 16).ok()?;
    let _device = text()?;
    let inode = text()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    let kept = path.strip_suffix(b" (deleted)");
    is_executable.then_some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset,
        inode,
        path: kept.unwrap_or(path).to_vec(),
        is_deleted: kept.is_some(),
    })
}

/// Tells one content of a file from another, as well as its inode can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// A regular file that is open to be read here and there. It belongs to someone else, who
/// may change or cut it at any time; so it is never mapped.
#[derive(Debug)]
pub struct CodeFile {
    file: File,
    id: FileId,
    owner: u32,
}

impl CodeFile {
    fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            let text = "not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let id = FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        Ok(Self {
            file,
            id,
            owner: metadata.uid(),
        })
    }

    /// Opens a file by its path. Only regular files are opened: a pipe or a device would
    /// wait for ever. A link at the end of the path is followed only if that is asked for.
    pub fn open(path: &Path, follows_link: bool) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let nofollow = if follows_link {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        let file = rustix::fs::open(path, flags | nofollow, Mode::empty())?;
        Self::new(file.into())
    }

    /// Its number in its file system.
    pub fn inode(&self) -> u64 {
        self.id.inode
    }

    /// What tells it from files that had its inode before; `None` where the file system does
    /// not say.
    pub fn generation(&self) -> Option<u32> {
        generation(&self.file)
    }

    /// The device of its file system, as the kernel's list of mappings says it: that of a file
    /// of Btrfs is another than the one that stat(2) says.
    pub fn device(&self, host: &Host) -> Option<Device> {
        let asked = rustix::fs::statx(&self.file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
        let mount = asked.ok()?.stx_mnt_id.to_string();
        let table = host.read(live(host, "self/mountinfo").ok()?).ok()?;
        let mut mounts = table.split(|byte| *byte == b'\n');
        mounts.find_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ');
            let is_it = fields.next()? == mount.as_bytes();
            let device = fields.nth(1)?;
            is_it.then(|| parse_device(device)).flatten()
        })
    }

    /// Which file it is.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Its size when it was opened.
    pub fn size(&self) -> u64 {
        self.id.size
    }

    /// Who owns it.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Reads as many bytes as there are, at most what `bytes` holds.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut n = 0;
        while n < bytes.len() {
            match self.file.read_at(&mut bytes[n..], offset + n as u64) {
                Ok(0) => break,
                Ok(read) => n += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(n)
    }
}

/// Opens the file behind a mapping, whatever has become of its name. That needs
/// `CAP_SYS_ADMIN`; without it the file is looked for by its name in the process's root,
/// and taken only if it is the same.
pub fn open_mapped(host: &Host, pid: u32, mapping: &Mapping) -> Result<CodeFile, HostError> {
    let below = format!("{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
    let path = live(host, &below)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(&path, flags, Mode::empty()) {
        return CodeFile::new(file.into()).map_err(unread(&path));
    }
    open_named(host, pid, mapping)
}

/// Opens the file behind a mapping by its name in the root of a process, which need not be the
/// one that had it mapped. It is taken only if it is the same.
pub fn open_named(host: &Host, pid: u32, mapping: &Mapping) -> Result<CodeFile, HostError> {
    let name = Path::new(std::ffi::OsStr::from_bytes(&mapping.path));
    let file = open_in_root(host, pid, name)?;
    if file.id.inode != mapping.inode {
        let other = io::Error::new(io::ErrorKind::NotFound, "another file has its name");
        return Err(unread(name)(other));
    }
    Ok(file)
}

/// What is mapped into our own process under a name such as `[vdso]`, if it is not too large.
pub fn own_memory(host: &Host, name: &[u8], limit: u64) -> Result<Vec<u8>, HostError> {
    let table = host.read(live(host, "self/maps")?)?;
    let path = live(host, "self/mem")?;
    let inside = || -> io::Result<Vec<u8>> {
        let mapping = parse(&table).into_iter().find(|map| map.path == name);
        let mapping = mapping.ok_or(io::ErrorKind::NotFound)?;
        let size = mapping.end.saturating_sub(mapping.start);
        if size > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        File::open(&path)?.read_exact_at(&mut bytes, mapping.start)?;
        Ok(bytes)
    };
    inside().map_err(unread(&path))
}

/// Opens a file by its name in the root of a process. Links are followed inside that root.
pub fn open_in_root(host: &Host, pid: u32, name: &Path) -> Result<CodeFile, HostError> {
    let path = live(host, &format!("{pid}/root"))?;
    let inside = || -> io::Result<CodeFile> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top: OwnedFd = rustix::fs::open(&path, flags, Mode::empty())?;
        // NONBLOCK: a named pipe must not stop us.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        CodeFile::new(open_inside(&top, name, flags)?.into())
    };
    inside().map_err(unread(name))
}

/// `FS_IOC_GETVERSION` of `linux/fs.h`: the number that a file system gives to each new use of
/// an inode.
fn generation(file: &File) -> Option<u32> {
    const GETVERSION: libc::Ioctl = 0x8008_7601_u32 as libc::Ioctl;
    // The kernel's definition says long, its file systems write an int.
    let mut version = [0_u32; 2];
    // SAFETY: the kernel writes at most a long to `version`, which has its size and outlives
    // the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), GETVERSION, &raw mut version) };
    (done == 0).then_some(version[0])
}

/// A path in procfs of the running node; a copy of one has no processes.
fn live(host: &Host, below: &str) -> Result<PathBuf, HostError> {
    let path = host.proc(below)?;
    if host.is_live() {
        Ok(path)
    } else {
        Err(HostError::NotLive(path.display().to_string()))
    }
}

fn unread(path: &Path) -> impl FnOnce(io::Error) -> HostError + use<> {
    let path = path.to_owned();
    move |source| HostError::Read { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(u64, u64, u64, u64, &str, bool)>) {
        let found = parse_line(line.as_bytes());
        let found = found.as_ref().map(|found| {
            let path = std::str::from_utf8(&found.path).expect("text");
            let is_deleted = found.is_deleted;
            (
                found.start,
                found.end,
                found.offset,
                found.inode,
                path,
                is_deleted,
            )
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_of_maps() {
        check(
            "55d0-55e0 r-xp 00002000 08:01 42                    /usr/bin/a b",
            Some((0x55d0, 0x55e0, 0x2000, 42, "/usr/bin/a b", false)),
        );
        check(
            "55d0-55e0 r-xp 00000000 08:01 42  /tmp/x (deleted)",
            Some((0x55d0, 0x55e0, 0, 42, "/tmp/x", true)),
        );
        check(
            "7f00-7f10 rwxp 00000000 00:00 0 ",
            Some((0x7f00, 0x7f10, 0, 0, "", false)),
        );
        check("55d0-55e0 r--p 00002000 08:01 42 /usr/bin/a", None);
        check("55d0 r-xp 0 08:01 42 /usr/bin/a", None);
        check("", None);
    }

    #[test]
    fn our_own_program_is_there() {
        let host = Host::live().expect("a mount table");
        let pid = std::process::id();
        let mappings = Mapping::read_executable(&host, pid).expect("our own maps");
        let own = a_line_of_maps as *const () as u64;
        let mapping = mappings
            .iter()
            .find(|map| (map.start..map.end).contains(&own));
        let mapping = mapping.expect("this function is mapped");
        assert!(mapping.has_file());
        let file = open_mapped(&host, pid, mapping).expect("our own file");
        let mut magic = [0; 4];
        assert_eq!(file.read_at(&mut magic, 0).expect("its bytes"), 4);
        assert_eq!(&magic, b"\x7fELF");
        assert_eq!(file.read_at(&mut magic, file.size()).expect("its end"), 0);
    }
}
