//! Segments of stacks by the names of their files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// Where they are in a bundle.
pub(crate) const FOLDER: &str = "stacks";

/// The tables of a segment. Samples come last, so that they are written after, and dropped
/// before what they refer to.
pub(crate) const TABLES: [&str; 3] = ["frames", "stacks", "samples"];

/// A sealed segment; the names of its files say all this but the size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StackSegment {
    pub(crate) sequence: u64,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// Of all its files.
    pub(crate) bytes: u64,
}

impl StackSegment {
    /// The file of one of its tables.
    pub(crate) fn path(&self, dir: &Path, table: &str) -> PathBuf {
        dir.join(FOLDER).join(self.file_name(table))
    }

    pub(crate) fn file_name(&self, table: &str) -> String {
        format!(
            "{table}-{:010}-{}-{}.parquet",
            self.sequence, self.from_ns, self.to_ns
        )
    }

    fn parse(name: &str) -> Option<(&str, Self)> {
        let mut parts = name.strip_suffix(".parquet")?.splitn(4, '-');
        let table = parts.next()?;
        let mut number = || parts.next()?.parse().ok();
        let segment = Self {
            sequence: number()?,
            from_ns: number()?,
            to_ns: number()?,
            bytes: 0,
        };
        TABLES.contains(&table).then_some((table, segment))
    }

    /// All segments of a bundle, oldest first.
    pub(crate) fn list(dir: &Path) -> Result<Vec<Self>, StoreError> {
        let mut segments = Vec::new();
        for (name, _) in files(dir)? {
            let Some(("samples", mut segment)) = Self::parse(&name) else {
                continue;
            };
            segment.bytes = segment.bytes_on_disk(dir);
            segments.push(segment);
        }
        segments.sort_by_key(|segment| segment.sequence);
        Ok(segments)
    }

    /// The size of its files. One may be dropped while the folder is being listed.
    fn bytes_on_disk(&self, dir: &Path) -> u64 {
        let files = TABLES.map(|table| fs::metadata(self.path(dir, table)));
        files.into_iter().flatten().map(|file| file.len()).sum()
    }

    /// Removes its files, the samples first.
    pub(crate) fn remove(&self, dir: &Path) -> Result<(), StoreError> {
        for table in TABLES.iter().rev() {
            remove(&self.path(dir, table))?;
        }
        Ok(())
    }

    /// Removes tables that a killed writer left without samples.
    pub(crate) fn remove_orphans(dir: &Path) -> Result<(), StoreError> {
        let whole = Self::list(dir)?;
        for (name, path) in files(dir)? {
            let Some((_, found)) = Self::parse(&name) else {
                continue;
            };
            if !whole.iter().any(|known| known.sequence == found.sequence) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Removes a file, unless it is gone already.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// The files of the folder; none when it is not there, as in bundles of older versions.
fn files(dir: &Path) -> Result<Vec<(String, PathBuf)>, StoreError> {
    let folder = dir.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("list", &folder))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("list", &folder))?;
        files.extend(
            entry
                .file_name()
                .into_string()
                .map(|name| (name, entry.path())),
        );
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_all_but_the_size() {
        let segment = StackSegment {
            sequence: 7,
            from_ns: 123,
            to_ns: 4567,
            bytes: 0,
        };
        let path = segment.path(Path::new("/b"), "frames");
        assert_eq!(
            path,
            Path::new("/b/stacks/frames-0000000007-123-4567.parquet")
        );
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(StackSegment::parse(name), Some(("frames", segment)));
        for other in [
            "names-1-2-3.parquet",
            "samples-1-2.parquet",
            "samples-1-2-3.tmp",
            "",
        ] {
            assert_eq!(StackSegment::parse(other), None, "{other}");
        }
    }
}
