//! What was done without a person, and when: one line each, so that the bounds on acts hold
//! across restarts. Written before an act, by root alone.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::RemedyError;
use crate::orders::{Allowed, Orders};

/// Where what was done and how to take it back is kept. Not below the agent's own folder: what
/// root writes must not lie where another user can put links.
pub const FOLDER: &str = "/var/lib/sexton-remedy";

/// A ledger that is larger was not written by us; it is begun again long before.
const MOST_BYTES: u64 = 1 << 20;

/// Acts that are kept.
const MOST_ACTS: usize = 1_000;

/// An act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// When, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The code of the finding.
    pub code: String,
    /// What it is about.
    pub origin: String,
}

/// The acts so far.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl Ledger {
    /// Reads the one in this folder, which is made if it is not there.
    pub fn open(folder: &Path) -> Result<Self, RemedyError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        made.map_err(|source| RemedyError::file("make", folder, source))?;
        let path = folder.join("acts.jsonl");
        let mut text = String::new();
        match File::open(&path) {
            Ok(file) => file.take(MOST_BYTES).read_to_string(&mut text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
        .map_err(|source| RemedyError::file("read", &path, source))?;
        // A line that a crash has torn was for an act that was not begun.
        let entries = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(Self {
            entries: entries.collect(),
            path,
        })
    }

    /// Why nothing may be done now. A clock that was set back does not make room: what lies
    /// ahead counts as just done.
    pub fn refusal(&self, orders: &Orders, allowed: &Allowed, now_ns: u64) -> Option<String> {
        let age = |entry: &Entry| Duration::from_nanos(now_ns.saturating_sub(entry.wall_ns));
        let recent = self.entries.iter().filter(|it| age(it) < orders.every);
        let recent: Vec<&Entry> = recent.collect();
        let every = orders.every.as_secs();
        let is_same = |it: &&&Entry| it.origin == allowed.origin();
        if let Some(last) = recent.iter().find(is_same) {
            let ago = age(last).as_secs();
            return Some(format!(
                "{} was acted on {ago} s ago; the least time between two acts is {every} s",
                allowed.origin()
            ));
        }
        (recent.len() >= orders.max_acts).then(|| {
            format!(
                "{} acts within {every} s; the limit is {}",
                recent.len(),
                orders.max_acts
            )
        })
    }

    /// Notes an act that is about to begin.
    pub fn note(&mut self, allowed: &Allowed, now_ns: u64) -> Result<(), RemedyError> {
        self.entries.push(Entry {
            wall_ns: now_ns,
            code: allowed.code().to_owned(),
            origin: allowed.origin().to_owned(),
        });
        let n_old = self.entries.len().saturating_sub(MOST_ACTS);
        self.entries.drain(..n_old);
        let mut text = Vec::new();
        for entry in &self.entries {
            let line = serde_json::to_vec(entry);
            text.extend(line.expect("text and numbers can be written as JSON"));
            text.push(b'\n');
        }
        let partial = self.path.with_extension("partial");
        let written = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&partial, &self.path));
        written.map_err(|source| RemedyError::file("write", &self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::{Act, Allow};

    const SECOND: u64 = 1_000_000_000;

    fn orders() -> Orders {
        let allow = ["a", "b", "c"].map(|name| Allow {
            code: "UNIT001".into(),
            origin: format!("{name}.service"),
            act: Act::Stop,
        });
        Orders {
            enabled: true,
            max_acts: 2,
            every: Duration::from_secs(100),
            allow: allow.to_vec(),
            ..Orders::default()
        }
    }

    #[test]
    fn acts_are_bounded_in_number_and_rate_also_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let orders = orders();
        let of = |name: &str| orders.of("UNIT001", name).expect("it is allowed");
        let refusal = |origin: &str, now: u64| {
            let ledger = Ledger::open(folder.path()).expect("it is read");
            ledger.refusal(&orders, &of(origin), now * SECOND)
        };
        let act = |origin: &str, now: u64| {
            assert_eq!(refusal(origin, now), None, "{origin} at {now}");
            let mut ledger = Ledger::open(folder.path()).expect("it is read");
            ledger
                .note(&of(origin), now * SECOND)
                .expect("it is written");
        };
        act("a.service", 1000);
        let same = refusal("a.service", 1010).expect("too soon");
        assert!(same.contains("10 s ago"), "{same}");
        act("b.service", 1010);
        let third = refusal("c.service", 1020).expect("too many");
        assert!(third.contains("2 acts within 100 s"), "{third}");
        // An hour back by the clock is no way around it.
        assert!(refusal("c.service", 500).is_some());
        act("a.service", 1101);
    }

    #[test]
    fn a_torn_line_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let orders = orders();
        let a = orders.of("UNIT001", "a.service").expect("it is allowed");
        let mut ledger = Ledger::open(folder.path()).expect("it is made");
        ledger.note(&a, SECOND).expect("it is written");
        let path = folder.path().join("acts.jsonl");
        let mut text = fs::read(&path).expect("it is there");
        text.extend(br#"{"wall_ns":12,"co"#);
        fs::write(&path, text).expect("it is torn");
        let ledger = Ledger::open(folder.path()).expect("it is read");
        assert_eq!(ledger.entries.len(), 1);
    }
}
