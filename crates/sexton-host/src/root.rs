//! Where a node's files are: the live system, or a folder that holds a copy.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::inside::open_inside;

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// Whether it is a directory itself.
    pub is_dir: bool,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// How long it says it is.
    pub size_bytes: u64,
    /// Who may do what, as in `chmod`.
    pub permissions: u32,
}

impl Meta {
    fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            kind: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Dir,
                FileType::Symlink => Kind::Link,
                _ => Kind::Other,
            },
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            permissions: stat.st_mode & 0o7777,
        }
    }

    /// Whether anyone may execute it.
    pub fn is_executable(self) -> bool {
        self.kind == Kind::File && self.permissions & 0o111 != 0
    }
}

/// The files of a node. Paths are absolute, as the node itself would write them.
pub trait Root: Send + Sync {
    /// The whole content of a file. One that has more than `limit_bytes` is refused
    /// with [`io::ErrorKind::FileTooLarge`].
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>>;
    /// The same, in place of what `content` held. For files that are read many times a
    /// second: a root that can do so keeps the allocation.
    fn read_into(&self, path: &Path, limit_bytes: u64, content: &mut Vec<u8>) -> io::Result<()> {
        *content = self.read(path, limit_bytes)?;
        Ok(())
    }
    /// The content of a file, to be read piece by piece and at most `limit_bytes` of it. For
    /// large files of which little is kept.
    fn open(&self, path: &Path, limit_bytes: u64) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(io::Cursor::new(self.read(path, limit_bytes)?)))
    }
    /// The entries of a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;
    /// Where a symbolic link points to.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// At most `len` bytes of a file, from `offset` on; fewer at its end. For files of
    /// which a part is enough: databases, and the first line of a script.
    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let whole = self.read(path, offset.saturating_add(len as u64))?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(whole.get(from..).unwrap_or_default().to_vec())
    }
    /// What a path leads to, symbolic links followed.
    fn meta(&self, _path: &Path) -> io::Result<Meta> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// The same of the path itself, which may be a symbolic link.
    fn link_meta(&self, _path: &Path) -> io::Result<Meta> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// The number of what a path leads to in its filesystem.
    fn inode(&self, _path: &Path) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// By which path a Unix socket can be connected to from here, links resolved. Only a
    /// running node has any.
    fn socket(&self, _path: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::NotFound.into())
    }
    /// Whether this is the running system itself.
    fn is_live(&self) -> bool;
}

/// So much of a file is read at once where it is read piece by piece.
const PIECE_BYTES: usize = 64 << 10;

/// The running system.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveRoot;

impl Root for LiveRoot {
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        read_up_to(fs::File::open(path)?, limit_bytes)
    }

    fn read_into(&self, path: &Path, limit_bytes: u64, content: &mut Vec<u8>) -> io::Result<()> {
        read_up_to_into(fs::File::open(path)?, limit_bytes, content)
    }

    fn open(&self, path: &Path, limit_bytes: u64) -> io::Result<Box<dyn BufRead>> {
        let file = fs::File::open(path)?.take(limit_bytes);
        Ok(Box::new(BufReader::with_capacity(PIECE_BYTES, file)))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            entries.push(Entry {
                is_dir: entry.file_type()?.is_dir(),
                name: entry.file_name(),
            });
        }
        Ok(entries)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        read_part(&fs::File::open(path)?, offset, len)
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        Ok(Meta::of(&rustix::fs::stat(path)?))
    }

    fn link_meta(&self, path: &Path) -> io::Result<Meta> {
        Ok(Meta::of(&rustix::fs::lstat(path)?))
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        Ok(rustix::fs::stat(path)?.st_ino)
    }

    fn socket(&self, path: &Path) -> io::Result<PathBuf> {
        let path = fs::canonicalize(path)?;
        let kind = fs::metadata(&path)?.file_type();
        if !std::os::unix::fs::FileTypeExt::is_socket(&kind) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(path)
    }

    fn is_live(&self) -> bool {
        true
    }
}

/// Reads at most one byte more than allowed. The size that the file claims is not
/// asked for: files of procfs claim to be empty.
fn read_up_to(file: fs::File, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    read_up_to_into(file, limit_bytes, &mut content)?;
    Ok(content)
}

/// Through `take`, which bounds it, and because a file itself would first be asked for
/// its size, which files of procfs do not have.
fn read_up_to_into(file: fs::File, limit_bytes: u64, content: &mut Vec<u8>) -> io::Result<()> {
    content.clear();
    file.take(limit_bytes.saturating_add(1))
        .read_to_end(content)?;
    if content.len() as u64 > limit_bytes {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(())
}

/// Reads at `offset` until `len` bytes are there or the file ends.
fn read_part(file: &fs::File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    let mut file = file;
    io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
    file.take(len as u64).read_to_end(&mut part)?;
    Ok(part)
}

/// A folder that holds a node's files. Every path, and every symbolic link on the
/// way, is resolved inside it: nothing outside can be reached.
#[derive(Debug)]
pub struct FolderRoot {
    top: OwnedFd,
}

impl FolderRoot {
    /// Opens the folder.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            top: rustix::fs::open(folder, flags, Mode::empty())?,
        })
    }

    fn open_inside(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        open_inside(&self.top, path, flags)
    }
}

impl FolderRoot {
    fn open_file(&self, path: &Path) -> io::Result<fs::File> {
        // Looked at before it is opened: opening a device may do something, such as start a
        // watchdog. NONBLOCK: a named pipe that takes its place must not stop us.
        let is_file = self.meta(path)?.kind == Kind::File;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = is_file.then(|| self.open_inside(path, flags)).transpose()?;
        match file.map(fs::File::from) {
            Some(file) if file.metadata()?.is_file() => Ok(file),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            )),
        }
    }
}

impl Root for FolderRoot {
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        read_up_to(self.open_file(path)?, limit_bytes)
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        read_part(&self.open_file(path)?, offset, len)
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        let file = self.open_inside(path, OFlags::PATH)?;
        Ok(Meta::of(&rustix::fs::fstat(&file)?))
    }

    fn link_meta(&self, path: &Path) -> io::Result<Meta> {
        let file = self.open_inside(path, OFlags::PATH | OFlags::NOFOLLOW)?;
        Ok(Meta::of(&rustix::fs::fstat(&file)?))
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        let file = self.open_inside(path, OFlags::PATH)?;
        Ok(rustix::fs::fstat(&file)?.st_ino)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let dir = self.open_inside(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let is_dir = match entry.file_type() {
                FileType::Unknown => {
                    let stat =
                        rustix::fs::statat(&dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                }
                known => known == FileType::Directory,
            };
            let name = std::os::unix::ffi::OsStringExt::from_vec(name.to_vec());
            entries.push(Entry { name, is_dir });
        }
        Ok(entries)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let link = self.open_inside(path, OFlags::PATH | OFlags::NOFOLLOW)?;
        let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
        Ok(PathBuf::from(
            <OsString as std::os::unix::ffi::OsStringExt>::from_vec(target.into_bytes()),
        ))
    }

    fn is_live(&self) -> bool {
        false
    }
}
