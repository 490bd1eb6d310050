//! The ring of an agent: a bundle for each boot, because times of two boots cannot be
//! compared, and one bound for all of them.
//!
//! ```text
//! lock                     held by the one agent; has its pid
//! boots/0001-<boot id>/    a bundle: what was recorded
//! findings/0001-<boot id>/ a bundle: the lives of findings
//! incidents/<name>/        bundles that outlive the ring
//! export/<name>.json       how far an exporter has come
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::StoreError;
use crate::ledger::{Ledger, bytes_under};
use crate::lock::Lock;
use crate::meta::{self, Meta};

const BOOTS: &str = "boots";
const FINDINGS: &str = "findings";
const INCIDENTS: &str = "incidents";

/// What a `bundle.json` that cannot be read is called from then on.
const DAMAGED: &str = "bundle.json.damaged";

/// Where an agent keeps what it records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    path: PathBuf,
}

/// One boot in a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Counted from 1.
    pub sequence: u64,
    /// The kernel's id of the boot.
    pub id: String,
    /// The bundle of what was recorded.
    pub records: PathBuf,
    /// The bundle of the lives of findings.
    pub findings: PathBuf,
}

/// The right to write to a ring.
#[derive(Debug)]
pub struct Held {
    _lock: Lock,
}

impl Ring {
    /// The ring in a folder, which need not be there yet.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where incidents are kept.
    pub fn incidents(&self) -> PathBuf {
        self.path.join(INCIDENTS)
    }

    /// Makes the ring this process's own for as long as the value lives.
    pub fn hold(&self) -> Result<Held, StoreError> {
        for folder in [BOOTS, FINDINGS, INCIDENTS] {
            let folder = self.path.join(folder);
            fs::create_dir_all(&folder).map_err(StoreError::io("create", &folder))?;
        }
        let lock = Lock::take(&self.path)?;
        Ok(Held { _lock: lock })
    }

    /// The boots in it, oldest first.
    pub fn boots(&self) -> Result<Vec<Boot>, StoreError> {
        let folder = self.path.join(BOOTS);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(StoreError::io("list", &folder))?,
        };
        let mut boots = Vec::new();
        for entry in entries {
            let name = entry.map_err(StoreError::io("list", &folder))?.file_name();
            boots.extend(name.to_str().and_then(|name| self.boot(name)));
        }
        boots.sort_by_key(|boot| boot.sequence);
        Ok(boots)
    }

    /// The boot of this id: the one that is there, or the next.
    pub fn boot_of(&self, id: &str) -> Result<Boot, StoreError> {
        let boots = self.boots()?;
        let next = boots.last().map_or(1, |last| last.sequence + 1);
        let known = boots.into_iter().find(|boot| boot.id == id);
        Ok(known.unwrap_or_else(|| self.place(next, id)))
    }

    /// Sets aside what says whose records a boot's are, where it was damaged: the name of the
    /// folder says it too, so its writer begins with a new one. Gives what was set aside.
    pub fn mend(&self, boot: &Boot) -> Result<Vec<PathBuf>, StoreError> {
        let mut damaged = Vec::new();
        for folder in [&boot.records, &boot.findings] {
            let is_damaged = match Meta::read(folder) {
                Ok(meta) => meta.is_some_and(|meta| meta.node.boot_id != boot.id),
                Err(StoreError::NotABundle { .. }) => true,
                Err(error) => return Err(error),
            };
            if is_damaged {
                let (file, aside) = (folder.join(meta::FILE), folder.join(DAMAGED));
                fs::rename(&file, &aside).map_err(StoreError::io("rename", &file))?;
                damaged.push(aside);
            }
        }
        Ok(damaged)
    }

    /// Bytes of all boots but one, and of all findings.
    pub fn bytes_beside(&self, current: &Boot) -> Result<u64, StoreError> {
        let mut bytes = bytes_of(&self.path.join(FINDINGS))?;
        for boot in self.boots()? {
            if boot.id != current.id {
                bytes += bytes_of(&boot.records)?;
            }
        }
        Ok(bytes)
    }

    /// Drops the oldest segments of earlier boots until so few bytes are left of them, and
    /// boots that ended too long ago. A boot without a segment goes.
    pub fn trim_beside(
        &self,
        current: &Boot,
        bytes: u64,
        max_age: Duration,
    ) -> Result<(), StoreError> {
        let mut left = self.bytes_beside(current)?;
        for boot in self.boots()? {
            if boot.id == current.id {
                continue;
            }
            let own = bytes_of(&boot.records)?;
            if is_older(&boot.records, max_age) {
                self.remove(&boot)?;
                left = left.saturating_sub(own);
            } else if left > bytes {
                let mut ledger = Ledger::new(&boot.records, u64::MAX)?;
                ledger.shrink_to(own.saturating_sub(left - bytes))?;
                let is_empty = ledger.segments.is_empty() && ledger.stacks.is_empty();
                let now = if is_empty {
                    self.remove(&boot)?;
                    0
                } else {
                    bytes_of(&boot.records)?
                };
                left = left.saturating_sub(own - now.min(own));
            }
        }
        Ok(())
    }

    fn remove(&self, boot: &Boot) -> Result<(), StoreError> {
        for folder in [&boot.records, &boot.findings] {
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("remove", folder)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn boot(&self, name: &str) -> Option<Boot> {
        let (sequence, id) = name.split_once('-')?;
        Some(self.place(sequence.parse().ok()?, id))
    }

    fn place(&self, sequence: u64, id: &str) -> Boot {
        // The id comes from the kernel, or from a name that this function made.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let plain: String = id.chars().filter(|c| is_plain(*c)).collect();
        let name = format!("{sequence:04}-{plain}");
        Boot {
            sequence,
            id: id.to_owned(),
            records: self.path.join(BOOTS).join(&name),
            findings: self.path.join(FINDINGS).join(&name),
        }
    }
}

fn bytes_of(folder: &Path) -> Result<u64, StoreError> {
    match bytes_under(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        bytes => bytes.map_err(StoreError::io("list", folder)),
    }
}

/// Whether nothing was written to a bundle for so long.
fn is_older(bundle: &Path, max_age: Duration) -> bool {
    let written = [bundle.join("records"), bundle.join(meta::FILE)];
    let written = written.iter().filter_map(|path| fs::metadata(path).ok());
    let last = written.filter_map(|file| file.modified().ok()).max();
    let age = last.and_then(|last| SystemTime::now().duration_since(last).ok());
    age.is_some_and(|age| age > max_age)
}
