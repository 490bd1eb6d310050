//! What the last fix came to, kept for those who ask later whether a reboot is needed.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::consent::Consent;
use crate::error::RemedyError;

/// Where it is kept.
pub const FILE: &str = "/var/lib/sexton/last-fix.json";

/// One that is larger was not written by us.
const MOST_BYTES: u64 = 64 << 10;

/// What a fix came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// The boot it was carried out in.
    pub boot_id: String,
    /// When, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Dying memory cgroups of the whole node after it.
    pub dying: Option<u64>,
    /// They still came: the source was not stopped.
    pub still_leaking: Option<String>,
    /// So much was left that a reboot is worth its price.
    pub reboot_advised: bool,
}

impl Outcome {
    /// Keeps it in place of the one before.
    pub fn keep(&self, path: &Path, _consent: &Consent) -> Result<(), RemedyError> {
        let wrong = |source| RemedyError::file("write", path, source);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(wrong)?;
        }
        let text = serde_json::to_string_pretty(self).map_err(|error| wrong(error.into()))?;
        // The folder is the agent's, whose user may have put a link there: a new file is made.
        let partial = path.with_extension("partial");
        if let Err(error) = fs::remove_file(&partial)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(wrong(error));
        }
        let mut new = OpenOptions::new();
        let mut file = new
            .write(true)
            .create_new(true)
            .open(&partial)
            .map_err(wrong)?;
        file.write_all(text.as_bytes()).map_err(wrong)?;
        file.sync_all().map_err(wrong)?;
        fs::rename(&partial, path).map_err(wrong)
    }

    /// The last one, if there ever was one. Reboots hang on it, so only root's or our own counts.
    pub fn read(path: &Path) -> Result<Option<Self>, RemedyError> {
        let wrong = |source| RemedyError::file("read", path, source);
        let mut options = OpenOptions::new();
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match options.read(true).custom_flags(flags).open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(wrong)?,
        };
        let user = file.metadata().map_err(wrong)?.uid();
        if user != 0 && user != rustix::process::geteuid().as_raw() {
            let why = format!("it belongs to user {user}, not to root");
            return Err(wrong(std::io::Error::other(why)));
        }
        let mut text = String::new();
        file.take(MOST_BYTES)
            .read_to_string(&mut text)
            .map_err(wrong)?;
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| wrong(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state/last-fix.json");
        assert_eq!(Outcome::read(&path).expect("nothing is there"), None);
        let outcome = Outcome {
            boot_id: "b".into(),
            dying: Some(23),
            reboot_advised: true,
            ..Outcome::default()
        };
        let consent = Consent::given_by_the_user();
        outcome.keep(&path, &consent).expect("it is kept");
        let read = Outcome::read(&path).expect("it is read");
        assert_eq!(read.as_ref(), Some(&outcome));
        let partial = path.with_extension("partial");
        let target = folder.path().join("target");
        fs::write(&target, "kept").expect("a file");
        std::os::unix::fs::symlink(&target, &partial).expect("a link");
        outcome.keep(&path, &consent).expect("it is kept again");
        assert_eq!(fs::read(&target).expect("a file"), b"kept");
        fs::write(&path, "{").expect("it is cut");
        let error = Outcome::read(&path).expect_err("it is broken").to_string();
        assert!(error.contains("last-fix.json"), "{error}");
    }
}
