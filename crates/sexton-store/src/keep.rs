//! Keeps a part of a bundle as a bundle of its own: the sealed segments that overlap a time.
//!
//! Segments are linked, not copied, where the filesystem can: what the ring drops later stays
//! here, and until then it takes no room.

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use sexton_model::moment::Moment;

use crate::error::StoreError;
use crate::ledger::{Segment, bytes_under};
use crate::meta;
use crate::stacks::{self, StackSegment};

/// What was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Segments of records.
    pub segments: usize,
    /// All its files.
    pub bytes: u64,
}

/// Keeps what a bundle holds of a time in another folder. What is there already stays, so that
/// it can be called again for segments that were sealed meanwhile.
pub fn keep_window(
    bundle: &Path,
    folder: &Path,
    window: RangeInclusive<Moment>,
) -> Result<Kept, StoreError> {
    let (from_ns, to_ns) = (window.start().as_ns(), window.end().as_ns());
    for name in ["records", "raw", stacks::FOLDER] {
        let path = folder.join(name);
        fs::create_dir_all(&path).map_err(StoreError::io("create", &path))?;
    }
    let records = bundle.join("records");
    let mut n_segments = 0;
    for segment in Segment::list(&records)? {
        if segment.to_ns >= from_ns && segment.from_ns <= to_ns {
            let name = segment.file_name();
            link(&records.join(&name), &folder.join("records").join(name))?;
            n_segments += 1;
        }
    }
    for segment in StackSegment::list(bundle)? {
        if segment.to_ns >= from_ns && segment.from_ns <= to_ns {
            for table in stacks::TABLES {
                link(&segment.path(bundle, table), &segment.path(folder, table))?;
            }
        }
    }
    copy_below(&bundle.join("raw"), &folder.join("raw"))?;
    // Last: without it the folder is no bundle.
    let meta = folder.join(meta::FILE);
    if !meta.exists() {
        let from = bundle.join(meta::FILE);
        fs::copy(&from, &meta).map_err(StoreError::io("copy", &from))?;
    }
    Ok(Kept {
        segments: n_segments,
        bytes: bytes_under(folder).map_err(StoreError::io("list", folder))?,
    })
}

/// A segment that the ring has dropped meanwhile is left out: it was too old.
fn link(from: &Path, to: &Path) -> Result<(), StoreError> {
    let linked = match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => fs::copy(from, to).map(|_| ()),
        Ok(()) => Ok(()),
    };
    linked.map_err(StoreError::io("keep", from))
}

/// Raw files are small and few, and never dropped.
fn copy_below(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(to).map_err(StoreError::io("create", to))?;
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(StoreError::io("list", from))?,
    };
    for entry in entries {
        let entry = entry.map_err(StoreError::io("list", from))?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(StoreError::io("list", &path))?;
        if kind.is_dir() {
            copy_below(&path, &copy)?;
        } else if kind.is_file() && !copy.exists() {
            fs::copy(&path, &copy).map_err(StoreError::io("copy", &path))?;
        }
    }
    Ok(())
}
