//! Files of a root folder, changed without ever leaving it.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};

use sexton_host::open_inside;

use super::ledger::{Ledger, Time, Was};

/// A unit file that somebody wrote is small; a larger one is not taken into the undo file.
const CONTENT_BYTES_MAX: u64 = 4 << 20;

/// The name under which a file is made before it gets its own.
const ASIDE: &str = ".sexton-aside";

pub(super) struct Inside {
    top: OwnedFd,
}

impl Inside {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            top: rustix::fs::open(root, flags, Mode::empty())?,
        })
    }

    fn open_inside(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        open_inside(&self.top, path, flags)
    }

    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open_inside(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The folder that a path is in, and its name there.
    fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a std::ffi::OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let folder = self.folder(path.parent().unwrap_or(Path::new("/")))?;
        Ok((folder, name))
    }

    /// What is at a path.
    pub(super) fn was(&self, path: &Path) -> io::Result<Was> {
        let (folder, name) = match self.parent(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Was::Nothing),
            found => found?,
        };
        let stat = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => return Ok(Was::Nothing),
            found => found?,
        };
        let owner = (stat.st_uid, stat.st_gid);
        let time = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Ok(Was::Link {
                target: rustix::fs::readlinkat(&folder, name, Vec::new())?.into_bytes(),
                owner,
                time,
            }),
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
                let mut content = Vec::new();
                std::fs::File::from(file)
                    .take(CONTENT_BYTES_MAX + 1)
                    .read_to_end(&mut content)?;
                if content.len() as u64 > CONTENT_BYTES_MAX {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                Ok(Was::File {
                    content,
                    mode: stat.st_mode & 0o7777,
                    owner,
                    time,
                })
            }
            _ => Err(io::Error::other("it is neither a file nor a link")),
        }
    }

    /// Takes down which folders a path needs that are not there, and when the others were last
    /// changed. Nothing is made yet.
    pub(super) fn note_folders(&self, path: &Path, ledger: &mut Ledger) -> io::Result<()> {
        let mut folders: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_owned).collect();
        folders.reverse();
        for folder in folders {
            let name = folder.display().to_string();
            match self.folder(&folder) {
                Ok(opened) => {
                    if !ledger.made.contains(&name) && !ledger.times.contains_key(&name) {
                        let stat = rustix::fs::fstat(&opened)?;
                        let time = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
                        ledger.times.insert(name, time);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if !ledger.made.contains(&name) {
                        ledger.made.push(name);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes the folders that a path needs.
    pub(super) fn make_folders(&self, path: &Path) -> io::Result<()> {
        let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
        folders.reverse();
        for folder in folders {
            match self.folder(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let (parent, last) = self.parent(folder)?;
                    rustix::fs::mkdirat(&parent, last, Mode::from_raw_mode(0o755))?;
                }
                found => drop(found?),
            }
        }
        Ok(())
    }

    /// Takes away what a kill left that came before the file was there: nothing else was
    /// changed then.
    pub(super) fn clear_leftover(&self, file: &Path) -> io::Result<()> {
        self.remove(&file.with_file_name(ASIDE))?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        // It stays if anything else is in it.
        let _ = self.remove_folder(folder);
        Ok(())
    }

    /// Writes a file in place of what is there. It is written under another name first, so
    /// that no link is followed, and a kill or a full disk leaves the old one whole.
    pub(super) fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.replace(path, |folder, aside| {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(folder, aside, flags, Mode::from_raw_mode(0o644))?;
            let mut file = std::fs::File::from(file);
            file.write_all(content)?;
            file.sync_all()
        })
    }

    pub(super) fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.replace(path, |folder, aside| {
            Ok(rustix::fs::symlinkat(target, folder, aside)?)
        })
    }

    /// Puts what `make` makes beside a path into its place.
    fn replace(
        &self,
        path: &Path,
        make: impl FnOnce(&OwnedFd, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let aside = Path::new(ASIDE);
        self.remove(&path.with_file_name(ASIDE))?;
        let done = make(&folder, aside)
            .and_then(|()| Ok(rustix::fs::renameat(&folder, aside, &folder, name)?))
            .and_then(|()| Ok(rustix::fs::fsync(&folder)?));
        if done.is_err() {
            let _ = rustix::fs::unlinkat(&folder, aside, AtFlags::empty());
        }
        done
    }

    /// Takes away what is there, if anything is.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = match self.parent(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        Ok(rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR)?)
    }

    /// Gives a file a second name, under which it outlives what takes its place: content alone
    /// would lose labels, access lists and other names of it. Where the filesystem cannot, its
    /// content in the ledger has to do.
    pub(super) fn keep(&self, path: &Path, kept: &Path) -> io::Result<()> {
        use rustix::io::Errno;
        self.make_folders(kept)?;
        let (from, name) = self.parent(path)?;
        let (to, kept_name) = self.parent(kept)?;
        match rustix::fs::linkat(&from, name, &to, kept_name, AtFlags::empty()) {
            Ok(()) | Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a kept file its own name back; `false` if none was kept.
    fn give_back(&self, path: &Path, kept: &Path) -> io::Result<bool> {
        let (to, name) = self.parent(path)?;
        let (from, kept_name) = match self.parent(kept) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        match rustix::fs::renameat(&from, kept_name, &to, name) {
            // Two names of one file: the kernel leaves both.
            Ok(()) => self.remove(kept).map(|()| true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts back what was there, and takes away what a kill may have left beside it.
    pub(super) fn restore(&self, path: &Path, was: &Was, kept: Option<&Path>) -> io::Result<()> {
        self.remove(&path.with_file_name(ASIDE))?;
        if let Some(kept) = kept
            && (self.give_back(path, kept)? || self.was(path)? == *was)
        {
            return Ok(());
        }
        let (owner, time) = match was {
            Was::Nothing => return self.remove(path),
            Was::Link {
                target,
                owner,
                time,
            } => {
                let target = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(target);
                self.link(path, Path::new(target))?;
                (*owner, *time)
            }
            Was::File {
                content,
                mode,
                owner,
                time,
            } => {
                self.write(path, content)?;
                let (folder, name) = self.parent(path)?;
                rustix::fs::chmodat(&folder, name, Mode::from_raw_mode(*mode), AtFlags::empty())?;
                (*owner, *time)
            }
        };
        let (folder, name) = self.parent(path)?;
        let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (stat.st_uid, stat.st_gid) != owner {
            let (user, group) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            rustix::fs::chownat(
                &folder,
                name,
                Some(user),
                Some(group),
                AtFlags::SYMLINK_NOFOLLOW,
            )?;
        }
        rustix::fs::utimensat(&folder, name, &times(time), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    pub(super) fn set_time(&self, folder: &Path, time: Time) -> io::Result<()> {
        let folder = self.folder(folder)?;
        Ok(rustix::fs::futimens(&folder, &times(time))?)
    }
}

fn times(time: Time) -> Timestamps {
    let time = Timespec {
        tv_sec: time.0,
        tv_nsec: time.1,
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}
