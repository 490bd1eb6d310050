//! The undo file: how to take back what was done. Each line is written and made safe
//! before the change it takes back, so a crash at any moment leaves a file that works.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use crate::error::RemedyError;

/// Where undo files are kept, unless told otherwise. Not below the agent's own folder: what is done
/// as root must not come from where another user can put links.
pub const FOLDER: &str = "/var/lib/sexton-remedy/undo";

/// An undo file that is larger was not written by us.
const MOST_BYTES: u64 = 16 << 20;

const NAME: &str = ".undo.jsonl";

/// How one change is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A unit was stopped, and perhaps disabled and masked.
    Unit {
        /// The unit.
        unit: String,
        /// Its state for `systemctl is-enabled` before.
        enabled: String,
        /// It ran before.
        was_active: bool,
        /// We masked it.
        masked: bool,
        /// We disabled it.
        disabled: bool,
    },
    /// A file was written that was not there.
    NewFile {
        /// The file.
        path: PathBuf,
        /// Whether systemd must read its configuration again.
        reload: bool,
    },
    /// A container was stopped.
    Container {
        /// The program that manages it: `docker`.
        runtime: String,
        /// Its id.
        id: String,
        /// Its restart policy before.
        restart: String,
    },
    /// A cgroup's protection was raised for a while.
    MemoryLow {
        /// The file.
        path: PathBuf,
        /// What it said before.
        value: String,
    },
}

/// An undo file that is being written. There is none until something is changed.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    open: Option<(PathBuf, File)>,
}

impl Journal {
    /// One in this folder, which is made when it is needed.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            open: None,
        }
    }

    /// Writes down how to take a change back. To be called before the change.
    pub fn note(&mut self, change: &Change) -> Result<(), RemedyError> {
        self.note_all(std::slice::from_ref(change))
    }

    /// The same for many changes, which reach the disk together.
    pub fn note_all(&mut self, changes: &[Change]) -> Result<(), RemedyError> {
        if changes.is_empty() {
            return Ok(());
        }
        let (path, file) = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(begin(&self.folder)?),
        };
        let mut lines = Vec::new();
        for change in changes {
            let line = serde_json::to_vec(change);
            lines.extend(line.expect("text and flags can be written as JSON"));
            lines.push(b'\n');
        }
        file.write_all(&lines)
            .and_then(|()| file.sync_all())
            .map_err(|source| RemedyError::file("write", path.clone(), source))
    }

    /// The file, once there is one.
    pub fn path(&self) -> Option<&Path> {
        self.open.as_ref().map(|(path, _)| path.as_path())
    }
}

fn begin(folder: &Path) -> Result<(PathBuf, File), RemedyError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| RemedyError::file("make", folder, source))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ns = now.map_or(0, |now| now.as_nanos());
    let name = format!("{ns:020}-{}{NAME}", std::process::id());
    let path = folder.join(&name);
    let held = trusted_folder(folder)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
    let file = openat(&held, name, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| RemedyError::file("make", &path, error.into()))?;
    // The name itself must survive a crash too.
    held.sync_all()
        .map_err(|source| RemedyError::file("make safe", folder, source))?;
    Ok((path, file.into()))
}

/// Opens a folder that only we may write to, and that is no link.
fn trusted_folder(folder: &Path) -> Result<File, RemedyError> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    let held = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(folder)
        .map_err(|source| RemedyError::file("open", folder, source))?;
    trusted(&held).map_err(|what| RemedyError::Malformed {
        path: folder.to_owned(),
        what,
    })?;
    Ok(held)
}

/// Opens an undo file: a plain file in a folder that only we may write to. Elsewhere a link could
/// lead to a file of root's with the content of another user, such as one of procfs.
fn open(path: &Path) -> Result<File, RemedyError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    trusted_folder(folder)?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(|source| RemedyError::file("read", path, source))?;
    let wrong = |what: String| RemedyError::Malformed {
        path: path.to_owned(),
        what,
    };
    let meta = file.metadata().map_err(|error| wrong(error.to_string()))?;
    if !meta.is_file() {
        return Err(wrong("it is no plain file".into()));
    }
    trusted(&file).map_err(wrong)?;
    Ok(file)
}

/// The newest undo file that has not been used.
pub fn newest(folder: &Path) -> Result<PathBuf, RemedyError> {
    let nothing = || RemedyError::NothingToUndo {
        folder: folder.to_owned(),
    };
    let entries = fs::read_dir(folder).map_err(|_| nothing())?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_undo = |path: &PathBuf| path.to_string_lossy().ends_with(NAME);
    paths.filter(is_undo).max().ok_or_else(nothing)
}

/// The changes of an undo file, first to last. A last line that was torn by a crash is
/// left out: its change was never begun.
pub fn read(path: &Path) -> Result<Vec<Change>, RemedyError> {
    let file = open(path)?;
    let wrong = |what: String| RemedyError::Malformed {
        path: path.to_owned(),
        what,
    };
    let mut changes = Vec::new();
    let mut lines = BufReader::new(file.take(MOST_BYTES))
        .split(b'\n')
        .peekable();
    let mut n = 0;
    while let Some(line) = lines.next() {
        n += 1;
        let line = line.map_err(|source| RemedyError::file("read", path, source))?;
        match serde_json::from_slice(&line) {
            Ok(change) => changes.push(change),
            Err(_) if lines.peek().is_none() => {}
            Err(error) => return Err(wrong(format!("line {n} is not ours: {error}"))),
        }
    }
    Ok(changes)
}

/// What it says will be done as root: only root may have written it.
pub(crate) fn trusted(file: &File) -> Result<(), String> {
    let meta = file.metadata().map_err(|error| error.to_string())?;
    let own = rustix::process::geteuid().as_raw();
    match (meta.uid() == own, meta.mode() & 0o022 == 0) {
        (false, _) => Err(format!("it belongs to user {}, not to {own}", meta.uid())),
        (_, false) => Err("others may write to it; it is not trusted".into()),
        _ => Ok(()),
    }
}

/// Marks an undo file as used.
pub fn retire(path: &Path) -> Result<PathBuf, RemedyError> {
    let name = path.to_string_lossy();
    let done = PathBuf::from(format!("{}.done.jsonl", name.trim_end_matches(NAME)));
    let file = open(path)?;
    fs::rename(path, &done).map_err(|source| RemedyError::file("rename", path, source))?;
    file.set_permissions(Permissions::from_mode(0o400)).ok();
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(n: u32) -> Change {
        Change::NewFile {
            path: format!("/etc/{n}").into(),
            reload: n == 1,
        }
    }

    fn written(n: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::new(&folder.path().join("undo"));
        assert_eq!(journal.path(), None);
        for i in 0..n {
            journal.note(&change(i)).expect("written");
        }
        let path = journal.path().expect("a file").to_owned();
        (folder, path)
    }

    #[test]
    fn what_was_noted_is_read_back() {
        let (folder, path) = written(3);
        assert_eq!(newest(&folder.path().join("undo")).expect("one"), path);
        assert_eq!(
            read(&path).expect("read"),
            [change(0), change(1), change(2)]
        );
        retire(&path).expect("renamed");
        assert!(newest(&folder.path().join("undo")).is_err());
    }

    #[test]
    fn a_folder_of_others_or_behind_a_link_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("a folder");
        let link = folder.path().join("undo");
        std::os::unix::fs::symlink(&elsewhere, &link).expect("a link");
        Journal::new(&link).note(&change(1)).expect_err("a link");
        fs::set_permissions(&elsewhere, Permissions::from_mode(0o777)).expect("its mode");
        let refused = Journal::new(&elsewhere).note(&change(1));
        let why = refused.expect_err("others may write").to_string();
        assert!(why.contains("elsewhere"), "{why}");
        assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
    }

    #[test]
    fn an_undo_file_behind_a_link_is_not_read() {
        let (folder, path) = written(1);
        let link = path.with_file_name(format!("99{NAME}"));
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        read(&link).expect_err("a link");
        fs::set_permissions(folder.path().join("undo"), Permissions::from_mode(0o777)).expect("");
        read(&path).expect_err("others may write to its folder");
    }

    #[test]
    fn a_file_cut_at_any_byte_gives_what_was_whole() {
        let (_folder, path) = written(3);
        let whole = fs::read(&path).expect("read");
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("written");
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            let changes = read(&path).expect("read");
            // A line that lacks only its end is whole.
            assert!([lines, lines + 1].contains(&changes.len()), "cut at {cut}");
        }
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let (_folder, path) = written(1);
        fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("chmod");
        let error = read(&path).expect_err("refused").to_string();
        assert!(error.contains("not trusted"), "{error}");
    }

    #[test]
    fn a_line_in_the_middle_that_is_not_ours_is_an_error() {
        let (_folder, path) = written(1);
        let mut text = fs::read(&path).expect("read");
        text.splice(0..0, *b"{\"change\":\"format-disk\"}\n");
        fs::write(&path, text).expect("written");
        assert!(
            read(&path)
                .expect_err("refused")
                .to_string()
                .contains("line 1")
        );
    }
}
