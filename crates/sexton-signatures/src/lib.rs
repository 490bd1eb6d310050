//! What is known of offenders, and whether it fits what was seen. Data, in `signatures/`, one
//! file each; this crate reads the data and matches it. Pure: it is handed what was seen and
//! reads nothing itself.
//!
//! - `units`: units that have no use where they are enabled, and deployment profiles;
//! - `kernel_log`: lines of the kernel's log;
//! - `processes`: what a process is to the node;
//! - `requesters`: who has a daemon create cgroups and containers;
//! - `kernel_walks`: functions of the kernel that work on memory cgroups.
//!
//! Recordings hold what was seen. Signatures are matched when a recording is judged, so that a
//! new one finds its trouble in an old recording.

pub mod kernel_log;
pub mod kernel_walks;
pub mod processes;
pub mod requesters;
pub mod units;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;

use kernel_log::KernelLog;
use processes::Roles;

include!(concat!(env!("OUT_DIR"), "/signatures.rs"));

/// Why a file of signatures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// It makes no sense.
    #[error("{path}: {what}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// A line of it makes no sense.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
}

/// Reads a file. What it should not have is an error, with its line.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, SignatureError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        SignatureError::Line {
            path: path.display().to_string(),
            line: 1 + before.map_or(0, |before| before.matches('\n').count()),
            what: error.message().to_owned(),
        }
    })
}

/// The signatures that a recording is judged with.
#[derive(Debug, Clone)]
pub struct Signatures {
    /// Offenders among units, and deployment profiles.
    pub units: units::Signatures,
    /// Lines of the kernel's log.
    pub kernel_log: KernelLog,
    /// What processes are to the node.
    pub roles: Roles,
}

/// Read once. The files are part of the program, and tests read them.
static BUILT_IN: LazyLock<Arc<Signatures>> = LazyLock::new(|| {
    let read = Signatures::read_built_in();
    Arc::new(read.expect("the signatures of the program are tested"))
});

impl Signatures {
    /// Those that sexton brings.
    pub fn built_in() -> Arc<Self> {
        Arc::clone(&BUILT_IN)
    }

    fn read_built_in() -> Result<Self, SignatureError> {
        Ok(Self {
            units: units::Signatures::built_in()?,
            kernel_log: KernelLog::built_in()?,
            roles: Roles::built_in()?,
        })
    }

    /// Adds a file of any kind, told by what it has: patterns of the kernel's log, roles of
    /// processes, an offender among units, or else a deployment profile. What has the name of
    /// one that is there takes its place.
    pub fn add_file(&mut self, path: &Path, text: &str) -> Result<(), SignatureError> {
        let table: toml::Table = parse(path, text)?;
        if table.contains_key("pattern") || table.contains_key("driver") {
            self.kernel_log.add_file(path, text)
        } else if table.contains_key("role") {
            self.roles.add_file(path, text)
        } else {
            self.units.add_file(path, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_what_it_has() {
        let mut all = (*Signatures::built_in()).clone();
        let role = "[[role]]\nrole = 'x'\nsource = 's'\ncomm = ['xd']\nhits = [{ comm = 'xd' }]\n\
                    misses = [{ comm = 'yd' }]\n";
        all.add_file(Path::new("x.toml"), role).expect("a role");
        assert_eq!(all.roles.of(b"xd", b""), Some("x"));
        let unit = "title = 'x'\nunits = ['x.service']\nwhy = 'x'\nrisk = 'low'\nsource = ['x']\n";
        let n = all.units.units.len();
        all.add_file(Path::new("x.toml"), unit)
            .expect("an offender");
        assert_eq!(all.units.units.len(), n + 1);
        for (text, line) in [
            ("title = 'x'\nunits = ['x']\ncolour = 1\n", 3),
            ("title = 'x'\ncolour = 1\n", 2),
            ("driver = 'x'\ncolour = 1\n", 2),
            ("[[role]]\nrole = 'x'\n\ncolour = 1\n", 4),
            ("title = = 1", 1),
        ] {
            let error = all.add_file(Path::new("a/x.toml"), text);
            let error = error.expect_err("it is wrong").to_string();
            assert!(error.starts_with(&format!("a/x.toml:{line}: ")), "{error}");
        }
    }
}
