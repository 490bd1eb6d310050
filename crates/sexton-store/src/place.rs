//! How far a reader of the ring has come: a small file for each, replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sexton_model::moment::Moment;

use crate::error::StoreError;
use crate::ring::Ring;

/// Ours have some eighty bytes.
const MAX_BYTES: u64 = 4 << 10;

/// All before this was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The boot, by the kernel's id.
    pub boot: String,
    /// Nanoseconds after it.
    pub until_ns: u64,
}

impl Place {
    /// All before this moment of a boot was read.
    pub fn new(boot: &str, until: Moment) -> Self {
        Self {
            boot: boot.to_owned(),
            until_ns: until.as_ns(),
        }
    }

    /// The moment.
    pub fn until(&self) -> Moment {
        Moment::from_ns(self.until_ns)
    }
}

/// Where a reader's place is kept.
#[derive(Debug, Clone)]
pub struct PlaceFile {
    path: PathBuf,
}

impl Ring {
    /// Where the place of a reader is kept. Its name is ours: letters and dashes.
    pub fn place_of(&self, reader: &str) -> PlaceFile {
        let path = self.path().join("export").join(format!("{reader}.json"));
        PlaceFile { path }
    }
}

impl PlaceFile {
    /// The place; `None` when there is none yet. A file that makes no sense is an error.
    pub fn read(&self) -> Result<Option<Place>, StoreError> {
        let mut json = Vec::new();
        let read =
            File::open(&self.path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut json));
        match read {
            Ok(_) => {
                let damaged = |error: serde_json::Error| {
                    let error = io::Error::new(io::ErrorKind::InvalidData, error);
                    StoreError::io("understand", &self.path)(error)
                };
                serde_json::from_slice(&json).map(Some).map_err(damaged)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("read", &self.path)(error)),
        }
    }

    /// Replaces it. A kill at any moment leaves the old one or the new one.
    pub fn write(&self, place: &Place) -> Result<(), StoreError> {
        let new = self.path.with_extension("new");
        let write = || -> io::Result<()> {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = File::create(&new)?;
            file.write_all(&serde_json::to_vec(place)?)?;
            file.sync_data()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(StoreError::io("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = Ring::at(folder.path()).place_of("otlp-metrics");
        assert_eq!(file.read().expect("none yet"), None);
        for until_ns in [7, u64::MAX] {
            let place = Place::new("0f1e", Moment::from_ns(until_ns));
            file.write(&place).expect("a disk");
            assert_eq!(file.read().expect("it is there"), Some(place));
        }
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = Ring::at(folder.path()).place_of("parca");
        file.write(&Place::new("a", Moment::from_ns(1)))
            .expect("a disk");
        for text in ["", "{", "{\"boot\":1}", &"x".repeat(10_000)] {
            fs::write(&file.path, text).expect("a file");
            file.read().expect_err("no place");
        }
    }
}
