//! ext2, ext3 and ext4.
//!
//! The reader may not be shared between threads, so it has one of its own, which answers
//! questions. A damaged filesystem that makes it panic costs that thread and nothing else.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use ext4_view::{Ext4, Ext4Error, Ext4Read};
use sexton_host::{Entry, Kind, Meta, Root};

use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;

const NAME: &str = "ext4";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 1080, b"\x53\xef"),
    open,
};

/// A directory with more entries is damaged or a trap.
const N_ENTRIES_MAX: usize = 1_000_000;

type Question = Box<dyn FnOnce(&Ext4) + Send>;

fn open(bytes: &Shared, _gaps: &mut Gaps, _depth: usize) -> Result<Opened, ImageError> {
    let (questions, asked) = mpsc::channel::<Question>();
    let (say, loaded) = mpsc::channel();
    let reader = Reader(Arc::clone(bytes));
    let serve = move || match Ext4::load(Box::new(reader)) {
        Ok(filesystem) => {
            let _ = say.send(Ok(()));
            for question in asked {
                question(&filesystem);
            }
        }
        Err(error) => {
            let is_incompatible = matches!(error, Ext4Error::Incompatible(_));
            let _ = say.send(Err((is_incompatible, error.to_string())));
        }
    };
    std::thread::Builder::new()
        .name("ext4".into())
        .spawn(serve)
        .map_err(|error| ImageError::damaged(NAME, error))?;
    match loaded.recv() {
        Ok(Ok(())) => Ok((Box::new(Ext4Root(Mutex::new(questions))), NAME.into())),
        Ok(Err((true, what))) => Err(unread(bytes, &what)),
        Ok(Err((false, what))) => Err(ImageError::damaged(NAME, what)),
        Err(_) => Err(ImageError::damaged(NAME, "it is damaged beyond reading")),
    }
}

/// Features that the reader lacks, by their bit and their name in `mke2fs -O`.
///
/// From the kernel's Documentation/filesystems/ext4/super.rst.
const UNREAD: &[(u32, &str)] = &[
    (0x1, "compression"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x20000, "casefold"),
];

/// What the reader refuses, in words that can be acted upon.
fn unread(bytes: &Shared, what: &str) -> ImageError {
    let mut features = [0; 4];
    // Of the superblock, which begins at 1,024.
    let read = bytes.read_exact_at(1024 + 0x60, &mut features);
    let features = read.map_or(0, |()| u32::from_le_bytes(features));
    let named: Vec<&str> = UNREAD
        .iter()
        .filter(|(bit, _)| features & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    if what.contains("journal") {
        return ImageError::Unread {
            what: "an ext4 filesystem that was not unmounted, with a journal of another kind"
                .into(),
            remedy: "run e2fsck -fy on a copy, and give that",
        };
    }
    ImageError::Unread {
        what: match named.is_empty() {
            true => format!("an ext4 filesystem with unknown features ({what})"),
            false => format!("an ext4 filesystem with {}", named.join(", ")),
        },
        remedy: "mount it read-only and give the folder",
    }
}

struct Reader(Shared);

impl Ext4Read for Reader {
    fn read(
        &mut self,
        start: u64,
        buffer: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync + 'static>> {
        Ok(self.0.read_exact_at(start, buffer)?)
    }
}

struct Ext4Root(Mutex<mpsc::Sender<Question>>);

impl Ext4Root {
    /// Lets the reader's thread answer.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Ext4) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (say, answer) = mpsc::channel();
        let gone = || io::Error::other("the filesystem is damaged beyond reading");
        let questions = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let question: Question = Box::new(move |filesystem| {
            let _ = say.send(question(filesystem));
        });
        questions.send(question).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn into_io(error: Ext4Error) -> io::Error {
    let kind = match error {
        Ext4Error::NotFound => io::ErrorKind::NotFound,
        Ext4Error::IsADirectory => io::ErrorKind::IsADirectory,
        Ext4Error::NotADirectory => io::ErrorKind::NotADirectory,
        Ext4Error::Incompatible(_) | Ext4Error::Encrypted => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::InvalidData,
    };
    // The kind says it all for these; the others name what is wrong.
    match kind {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => kind.into(),
        _ => io::Error::new(kind, error.to_string()),
    }
}

fn as_path(path: &[u8]) -> io::Result<ext4_view::Path<'_>> {
    ext4_view::Path::try_from(path).map_err(|_| io::ErrorKind::InvalidFilename.into())
}

/// Reads up to `len` bytes from `offset` on.
fn read_part(filesystem: &Ext4, path: &[u8], offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut file = filesystem.open(as_path(path)?).map_err(into_io)?;
    file.seek_to(offset).map_err(into_io)?;
    let mut content = Vec::new();
    let mut piece = vec![0; 64 << 10];
    while (content.len() as u64) < len {
        let left = usize::try_from(len - content.len() as u64).unwrap_or(usize::MAX);
        let wanted = piece.len().min(left);
        match file.read_bytes(&mut piece[..wanted]).map_err(into_io)? {
            0 => break,
            n => content.extend_from_slice(&piece[..n]),
        }
    }
    Ok(content)
}

fn meta(meta: &ext4_view::Metadata) -> Meta {
    let sort = meta.file_type();
    Meta {
        kind: if sort.is_regular_file() {
            Kind::File
        } else if sort.is_dir() {
            Kind::Dir
        } else if sort.is_symlink() {
            Kind::Link
        } else {
            Kind::Other
        },
        size_bytes: meta.len(),
        permissions: u32::from(meta.mode()) & 0o7777,
    }
}

impl Root for Ext4Root {
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        let path = bytes(path);
        self.ask(move |filesystem| {
            let content = read_part(filesystem, &path, 0, limit_bytes.saturating_add(1))?;
            if content.len() as u64 > limit_bytes {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(content)
        })
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let path = bytes(path);
        self.ask(move |filesystem| read_part(filesystem, &path, offset, len as u64))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let path = bytes(path);
        self.ask(move |filesystem| {
            let mut entries = Vec::new();
            for entry in filesystem.read_dir(as_path(&path)?).map_err(into_io)? {
                let entry = entry.map_err(into_io)?;
                let name = entry.file_name().as_ref().to_vec();
                if name == b"." || name == b".." {
                    continue;
                }
                if entries.len() >= N_ENTRIES_MAX {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                entries.push(Entry {
                    name: OsString::from_vec(name),
                    is_dir: entry.file_type().is_ok_and(ext4_view::FileType::is_dir),
                });
            }
            Ok(entries)
        })
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let path = bytes(path);
        self.ask(move |filesystem| {
            let target = filesystem.read_link(as_path(&path)?).map_err(into_io)?;
            let target: &[u8] = target.as_ref();
            Ok(PathBuf::from(OsString::from_vec(target.to_vec())))
        })
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        let path = bytes(path);
        self.ask(move |filesystem| {
            let found = filesystem.metadata(as_path(&path)?).map_err(into_io)?;
            Ok(meta(&found))
        })
    }

    fn link_meta(&self, path: &Path) -> io::Result<Meta> {
        let path = bytes(path);
        self.ask(move |filesystem| {
            let found = filesystem
                .symlink_metadata(as_path(&path)?)
                .map_err(into_io)?;
            Ok(meta(&found))
        })
    }

    fn is_live(&self) -> bool {
        false
    }
}
