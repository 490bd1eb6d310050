//! The files whose cached pages keep dying cgroups alive.

use std::collections::HashMap;
use std::fmt;

use super::tree::CgroupIx;
use crate::origin::pattern_component as mask;

/// A device number as the kernel's users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// The driver's part.
    pub major: u32,
    /// The device's part.
    pub minor: u32,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// What sort of thing the pages belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A file on a disk or network filesystem.
    File,
    /// A tmpfs file, shared memory, or a memfd: only deleting it frees its pages.
    Shmem,
    /// A block device's own cache: filesystem metadata, raw access.
    BlockDevice,
    /// Not a file: anonymous memory.
    Anonymous,
}

impl FileKind {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Shmem => "shmem",
            Self::BlockDevice => "block-device",
            Self::Anonymous => "anonymous",
        }
    }
}

/// A file that pins dying cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinFile {
    /// Its path as seen from here, or inside its filesystem when no mount shows it.
    /// Bytes: names are hostile.
    pub path: Vec<u8>,
    /// Whether a mount shows it at that path.
    pub mounted: bool,
    /// The filesystem it is on, or the block device itself.
    pub device: Device,
    /// Its inode number.
    pub inode: u64,
    /// What sort of thing it is.
    pub kind: FileKind,
    /// No directory holds it any more; it lives while someone has it open.
    pub deleted: bool,
    /// Some process has it mapped.
    pub mapped: bool,
    /// Some of the pages seen wait for write-back.
    pub dirty: bool,
    /// Dying cgroups that hold a page of it.
    pub zombies: u64,
    /// Pages of it that they hold, as far as they were looked at.
    pub pages: u64,
}

/// That a file pins a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// The dying cgroup.
    pub cgroup: CgroupIx,
    /// Index into the census' files.
    pub file: u32,
    /// Pages of the file that it holds, as far as they were looked at.
    pub pages: u64,
}

/// Files alike, for people: seventy thousand lines help nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGroup {
    /// One path, or the pattern of several in one directory.
    pub pattern: Vec<u8>,
    /// How many files it stands for.
    pub n_files: u64,
    /// The first of them, for everything else.
    pub example: PinFile,
    /// Dying cgroups that they pin; one that two files pin counts twice.
    pub zombies: u64,
    /// Pages of theirs that are held.
    pub pages: u64,
}

/// Fewer files alike than this are shown one by one.
const ALIKE: u64 = 4;

/// Puts files of one directory with names alike together.
pub fn alike_files(files: &[PinFile]) -> Vec<FileGroup> {
    let mut buckets: HashMap<(Vec<u8>, FileKind, bool), Vec<usize>> = HashMap::new();
    for (i, file) in files.iter().enumerate() {
        buckets
            .entry((pattern_of(&file.path), file.kind, file.deleted))
            .or_default()
            .push(i);
    }
    let mut groups = Vec::new();
    for ((pattern, ..), members) in buckets {
        if (members.len() as u64) < ALIKE {
            groups.extend(
                members
                    .iter()
                    .map(|i| group(files[*i].path.clone(), &files[*i..=*i])),
            );
        } else {
            let files: Vec<PinFile> = members.iter().map(|i| files[*i].clone()).collect();
            groups.push(group(pattern, &files));
        }
    }
    groups.sort_by(|a, b| (b.zombies, b.pages, &a.pattern).cmp(&(a.zombies, a.pages, &b.pattern)));
    groups
}

fn group(pattern: Vec<u8>, files: &[PinFile]) -> FileGroup {
    FileGroup {
        pattern,
        n_files: files.len() as u64,
        example: files[0].clone(),
        zombies: files.iter().map(|file| file.zombies).sum(),
        pages: files.iter().map(|file| file.pages).sum(),
    }
}

/// The path with its last component masked.
pub(super) fn pattern_of(path: &[u8]) -> Vec<u8> {
    let at = path
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |slash| slash + 1);
    let mut pattern = path[..at].to_vec();
    pattern.extend(mask(&path[at..]));
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> PinFile {
        PinFile {
            path: path.into(),
            mounted: true,
            device: Device {
                major: 254,
                minor: 0,
            },
            inode: 7,
            kind: FileKind::File,
            deleted: false,
            mapped: false,
            dirty: false,
            zombies: 2,
            pages: 3,
        }
    }

    fn check(files: &[PinFile], expected: &[(&str, u64, u64)]) {
        let groups = alike_files(files);
        let found: Vec<_> = groups
            .iter()
            .map(|group| {
                (
                    String::from_utf8_lossy(&group.pattern).into_owned(),
                    group.n_files,
                    group.zombies,
                )
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, n, z)| ((*path).to_owned(), *n, *z))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_alike_in_one_folder_are_one_line() {
        let mut files: Vec<PinFile> = (0..5).map(|i| file(&format!("/log/run-{i}.log"))).collect();
        files.push(file("/log/other.log"));
        check(
            &files,
            &[("/log/run-<n>.log", 5, 10), ("/log/other.log", 1, 2)],
        );
    }

    #[test]
    fn a_few_files_alike_are_named() {
        let files = [file("/lib/libz.so.1"), file("/lib/libz.so.2")];
        check(
            &files,
            &[("/lib/libz.so.1", 1, 2), ("/lib/libz.so.2", 1, 2)],
        );
    }

    #[test]
    fn deleted_files_are_kept_apart() {
        let mut files: Vec<PinFile> = (0..8).map(|i| file(&format!("/log/{i}"))).collect();
        files
            .iter_mut()
            .take(4)
            .for_each(|file| file.deleted = true);
        check(&files, &[("/log/<n>", 4, 8), ("/log/<n>", 4, 8)]);
    }
}
