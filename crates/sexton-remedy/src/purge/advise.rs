//! First rung: write back and drop the cached pages of the very files that pin.
//!
//! `posix_fadvise(POSIX_FADV_DONTNEED)` starts the write-back of dirty pages and drops
//! those that are clean and not mapped. Files of others keep their cache. The file itself
//! is opened to read, and never changed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{
    Advice, CWD, FileType, Mode, OFlags, ResolveFlags, fadvise, fdatasync, fstat, open, openat2,
    syncfs,
};
use rustix::io::Errno;
use sexton_host::page_batches;
use sexton_model::census::PinFile;
use sexton_model::fix::{PlannedStep, StepOutcome};
use sexton_model::text::escape;

use super::holders::{self, Holders};
use super::stock::{is_cache, only_files};
use super::{ASKED_TO_STOP, Rung, Scope, Tools};
use crate::consent::Consent;
use crate::strain::Ease;

pub(crate) static RUNG: Rung = Rung { plan, climb };

/// How long CPUs are given to put waiting pages where they can be dropped.
const DRAIN: Duration = Duration::from_millis(500);

/// More files than this are not waited for one by one, each with a commit of the journal:
/// their filesystem is written back as a whole.
const MOST_SYNCED: usize = 64;

/// How many files are named in a plan.
const SHOWN: usize = 3;

fn plan(scope: &Scope<'_>) -> Option<PlannedStep> {
    let held_open = held_open(scope);
    let reaches = |file: &PinFile| is_cache(file) && door(file, &held_open).is_some();
    let files = scope.stock.files();
    let n_files = files.iter().filter(|(file, _)| reaches(file)).count();
    if n_files == 0 {
        return None;
    }
    let predicted = scope.stock.freed(|ix| {
        only_files(scope.stock.pages(ix))
            && scope
                .stock
                .files_of(ix)
                .all(|file| reaches(file) && !file.mapped)
    });
    let mut most = files;
    most.retain(|(file, _)| reaches(file));
    most.sort_by(|a, b| (b.1, &a.0.path).cmp(&(a.1, &b.0.path)));
    let mut changes: Vec<String> = most
        .iter()
        .take(SHOWN)
        .map(|(file, n)| format!("drop cached pages of {} (holds {n})", escape(&file.path)))
        .collect();
    if n_files > SHOWN {
        changes.push(format!("and of {} more files", n_files - SHOWN));
    }
    let n_dirty = most.iter().filter(|(file, _)| file.dirty).count();
    if n_dirty > MOST_SYNCED {
        changes.push(format!(
            "write back their filesystems too: {n_dirty} of the files wait for it"
        ));
    }
    Some(PlannedStep {
        title: "drop the cached pages of the files that pin them".into(),
        changes,
        undo: None,
        predicted: Some(predicted),
        withheld: None,
        except: None,
    })
}

/// Where files that no path leads to can be opened: by whoever has them open.
fn held_open(scope: &Scope<'_>) -> Holders {
    let unseen = |file: &PinFile| is_cache(file) && (file.deleted || !file.mounted);
    let files = scope.stock.files();
    let wanted: HashSet<_> = files
        .iter()
        .filter(|(file, _)| unseen(file))
        .map(|(file, _)| holders::key(file))
        .collect();
    holders::find(scope.host, &wanted)
}

/// By which path a file can be opened.
fn door(file: &PinFile, held_open: &Holders) -> Option<PathBuf> {
    match file.mounted && !file.deleted {
        true => Some(PathBuf::from(OsStr::from_bytes(&file.path))),
        false => held_open.open.get(&holders::key(file)).cloned(),
    }
}

fn climb(scope: &Scope<'_>, _consent: &Consent, tools: &mut Tools<'_>) -> StepOutcome {
    page_batches::drain(DRAIN);
    let mut round = Round::new(scope);
    // The advice has dirty pages written but does not wait for it, so all are on their way
    // to the disk before we wait for the first.
    let stopped = round
        .drop_pages(&cached(scope), tools, |_, _| {})
        .or_else(|| round.write_back(tools));
    match (stopped, round.trouble) {
        (Some(stopped), _) => stopped,
        (None, Some(trouble)) if round.n_dropped == 0 => StepOutcome::Failed(trouble),
        (None, _) => StepOutcome::Done,
    }
}

/// Has the files that pin written back, so that the kernel can let go of their pages; says
/// when it ended early.
pub(super) fn write_back(scope: &Scope<'_>, tools: &mut Tools<'_>) -> Option<StepOutcome> {
    Round::new(scope).write_back(tools)
}

fn cached<'a>(scope: &Scope<'a>) -> Vec<&'a PinFile> {
    let files = scope.stock.files().into_iter().map(|(file, _)| file);
    files.filter(|file| is_cache(file)).collect()
}

/// One way through the files.
struct Round<'a> {
    scope: &'a Scope<'a>,
    held_open: Holders,
    n_dropped: u64,
    trouble: Option<String>,
}

impl<'a> Round<'a> {
    fn new(scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            held_open: held_open(scope),
            n_dropped: 0,
            trouble: None,
        }
    }

    fn write_back(&mut self, tools: &mut Tools<'_>) -> Option<StepOutcome> {
        let mut dirty = cached(self.scope);
        dirty.retain(|file| file.dirty);
        let each = dirty.len() <= MOST_SYNCED;
        let mut written = HashSet::new();
        self.drop_pages(&dirty, tools, |opened, file| {
            if each {
                fdatasync(opened).ok();
            } else if written.insert(file.device) {
                syncfs(opened).ok();
            }
        })
    }

    /// Has the pages of each file dropped, after `prepare`; says when it ended early.
    fn drop_pages(
        &mut self,
        files: &[&PinFile],
        tools: &mut Tools<'_>,
        mut prepare: impl FnMut(&File, &PinFile),
    ) -> Option<StepOutcome> {
        for (i, file) in files.iter().enumerate() {
            if tools.stop.load(Ordering::Relaxed) {
                return Some(StepOutcome::Stopped(ASKED_TO_STOP.into()));
            }
            if tools.strain.ease(self.scope.host) == Ease::TooMuch {
                let why = "the node lacks memory; it was left alone";
                return Some(StepOutcome::Stopped(why.into()));
            }
            if i % 1024 == 0 {
                (tools.tell)(&format!("file {i} of {}", files.len()));
            }
            let Some(path) = door(file, &self.held_open) else {
                continue;
            };
            match opened(&path, file) {
                Ok(Some(opened)) => {
                    prepare(&opened, file);
                    // Not told one by one: the count afterwards tells what it came to.
                    fadvise(&opened, 0, None, Advice::DontNeed).ok();
                    self.n_dropped += 1;
                }
                // Its pages went with it.
                Ok(None) => {}
                Err(error) => {
                    self.trouble = Some(format!("cannot open {}: {error}", escape(&file.path)));
                }
            }
        }
        None
    }
}

/// Opens it to read; `None` if the file that the census saw is no longer there. It is looked at
/// before it is opened: to open a device can have an effect.
fn opened(path: &Path, file: &PinFile) -> io::Result<Option<File>> {
    let place = match place(path, file) {
        Ok(place) => place,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::STALE) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = fstat(&place)?;
    // Not the device: a subvolume of btrfs shows another than its filesystem has.
    let is_it =
        stat.st_ino == file.inode && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_it {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let itself = format!("/proc/self/fd/{}", place.as_raw_fd());
    Ok(Some(open(itself, flags, Mode::empty())?.into()))
}

/// Where a path leads, without opening it. The kernel told the paths of files that are mounted,
/// in which there is no link; one that is there now was put there since.
fn place(path: &Path, file: &PinFile) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    if !file.mounted || file.deleted {
        return open(path, flags, Mode::empty());
    }
    let flags = flags | OFlags::NOFOLLOW;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Linux before 5.6, or a filter of system calls that does not know it.
        Err(Errno::NOSYS | Errno::PERM) => open(path, flags, Mode::empty()),
        place => place,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use sexton_model::census::{Device, FileKind};

    use super::*;

    fn pin(path: &Path) -> PinFile {
        PinFile {
            path: path.as_os_str().as_bytes().to_vec(),
            mounted: true,
            device: Device { major: 0, minor: 0 },
            inode: fs::metadata(path).expect("there").ino(),
            kind: FileKind::File,
            deleted: false,
            mapped: false,
            dirty: false,
            zombies: 1,
            pages: 1,
        }
    }

    #[test]
    fn only_the_file_that_was_seen_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        fs::write(&path, "x").expect("written");
        let seen = pin(&path);
        let check = |expected: bool| {
            let opened = opened(&path, &seen).expect("no trouble");
            assert_eq!(opened.is_some(), expected);
        };
        check(true);
        let moved = folder.path().join("log.1");
        fs::rename(&path, &moved).expect("rotated");
        check(false);
        fs::write(&path, "y").expect("a new one");
        check(false);
        fs::remove_file(&path).expect("there");
        symlink(&moved, &path).expect("a link");
        check(false);
    }

    #[test]
    fn a_link_that_was_put_in_the_way_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("d/log");
        let moved = folder.path().join("e");
        fs::create_dir(folder.path().join("d")).expect("a folder");
        fs::write(&path, "x").expect("written");
        let seen = pin(&path);
        assert!(opened(&path, &seen).expect("no trouble").is_some());
        fs::rename(folder.path().join("d"), &moved).expect("moved");
        symlink(&moved, folder.path().join("d")).expect("a link");
        assert!(opened(&path, &seen).expect("no trouble").is_none());
    }

    #[test]
    fn what_is_no_plain_file_is_looked_at_and_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        // To open a socket fails; to look at it does not.
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let seen = pin(&path);
        assert!(opened(&path, &seen).expect("no trouble").is_none());
    }
}
