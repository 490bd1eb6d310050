//! What was done without a person, and when: one line each, so that the bounds on acts hold
//! across restarts. Written before an act, by root alone.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_model::moment::Moment;

use crate::error::RemedyError;
use crate::orders::{Allowed, Orders};

/// Where what was done and how to take it back is kept. Not below the agent's own folder: what
/// root writes must not lie where another user can put links.
pub const FOLDER: &str = "/var/lib/sexton-remedy";

/// A ledger that is larger was not written by us; it is begun again long before.
const MOST_BYTES: u64 = 1 << 20;

/// Acts that are kept.
const MOST_ACTS: usize = 1_000;

/// What time it is, by a clock that can be set and by one that cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    /// In nanoseconds since 1970.
    pub wall_ns: u64,
    /// Since the boot.
    pub boot: Moment,
    /// Which boot.
    pub boot_id: String,
}

/// An act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// When, in nanoseconds since the boot; none in a ledger of before.
    #[serde(default)]
    pub boot_ns: Option<u64>,
    /// In which boot.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// The code of the finding.
    pub code: String,
    /// What it is about.
    pub origin: String,
}

impl Entry {
    /// How long ago at least. In the same boot no change of the wall clock matters. What the wall
    /// clock puts ahead of now was noted, or is read, while it was wrong: in an earlier boot it was
    /// before this one began.
    fn age(&self, now: &Now) -> Duration {
        let age = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        let up = Duration::from_nanos(now.boot.as_ns());
        match (self.boot_ns, &self.boot_id) {
            (Some(at), Some(id)) if *id == now.boot_id => age(at, now.boot.as_ns()),
            (Some(_), Some(_)) => age(self.wall_ns, now.wall_ns).max(up),
            _ if self.wall_ns > now.wall_ns => up,
            _ => age(self.wall_ns, now.wall_ns),
        }
    }
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
        Ok(Self {
            entries: entries(&text, &path)?,
            path,
        })
    }

    /// Why nothing may be done now. A clock that was set back does not make room.
    pub fn refusal(&self, orders: &Orders, allowed: &Allowed, now: &Now) -> Option<String> {
        let recent = self.entries.iter().filter(|it| it.age(now) < orders.every);
        let recent: Vec<&Entry> = recent.collect();
        let every = orders.every.as_secs();
        let is_same = |it: &&&Entry| it.origin == allowed.origin();
        if let Some(last) = recent.iter().find(is_same) {
            let ago = last.age(now).as_secs();
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
    pub fn note(&mut self, allowed: &Allowed, now: &Now) -> Result<(), RemedyError> {
        self.entries.push(Entry {
            wall_ns: now.wall_ns,
            boot_ns: Some(now.boot.as_ns()),
            boot_id: Some(now.boot_id.clone()),
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

/// The acts of a ledger. A last line that was torn was for an act that was not begun; any other that
/// cannot be read may be an act, and without it the bounds do not hold.
fn entries(text: &str, path: &Path) -> Result<Vec<Entry>, RemedyError> {
    let mut entries = Vec::new();
    for (n, line) in text.split_inclusive('\n').enumerate() {
        match serde_json::from_str(line) {
            Ok(entry) => entries.push(entry),
            Err(_) if !line.ends_with('\n') => {}
            Err(error) => {
                return Err(RemedyError::Malformed {
                    path: path.to_owned(),
                    what: format!("line {} is no act: {error}; remove that line", n + 1),
                });
            }
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::fix::Act;

    use crate::orders::Allow;

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

    /// A second of the wall clock, and one since the boot.
    fn at(wall: u64, boot: u64, boot_id: &str) -> Now {
        Now {
            wall_ns: wall * SECOND,
            boot: Moment::from_ns(boot * SECOND),
            boot_id: boot_id.into(),
        }
    }

    #[test]
    fn acts_are_bounded_in_number_and_rate_also_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let orders = orders();
        let of = |name: &str| orders.of("UNIT001", name).expect("it is allowed");
        let refusal = |origin: &str, now: &Now| {
            let ledger = Ledger::open(folder.path()).expect("it is read");
            ledger.refusal(&orders, &of(origin), now)
        };
        let act = |origin: &str, now: &Now| {
            assert_eq!(refusal(origin, now), None, "{origin} at {now:?}");
            let mut ledger = Ledger::open(folder.path()).expect("it is read");
            ledger.note(&of(origin), now).expect("it is written");
        };
        act("a.service", &at(1000, 200, "x"));
        let same = refusal("a.service", &at(1010, 210, "x")).expect("too soon");
        assert!(same.contains("10 s ago"), "{same}");
        act("b.service", &at(1010, 210, "x"));
        let third = refusal("c.service", &at(1020, 220, "x")).expect("too many");
        assert!(third.contains("2 acts within 100 s"), "{third}");
        // Neither an hour back nor one ahead is a way around it, nor a reboot.
        for now in [at(500, 230, "x"), at(4600, 230, "x"), at(1040, 20, "y")] {
            assert!(refusal("c.service", &now).is_some(), "{now:?}");
        }
        act("a.service", &at(1101, 301, "x"));
    }

    #[test]
    fn acts_that_were_noted_in_the_future_hold_no_longer_than_others() {
        const IN_2036: u64 = 2_082_758_400;
        let folder = tempfile::tempdir().expect("a folder");
        let orders = orders();
        let a = orders.of("UNIT001", "a.service").expect("it is allowed");
        let mut ledger = Ledger::open(folder.path()).expect("it is made");
        ledger.note(&a, &at(IN_2036, 200, "x")).expect("written");
        let is_refused = |ledger: &Ledger, boot: u64, id: &str| {
            ledger.refusal(&orders, &a, &at(1000, boot, id)).is_some()
        };
        assert!(is_refused(&ledger, 299, "x"));
        assert!(!is_refused(&ledger, 301, "x"), "the clock was set right");
        assert!(is_refused(&ledger, 99, "y"), "just rebooted");
        assert!(!is_refused(&ledger, 101, "y"));
        let before = format!(
            "{{\"wall_ns\":{},\"code\":\"UNIT001\",\"origin\":\"a.service\"}}\n",
            IN_2036 * SECOND
        );
        fs::write(folder.path().join("acts.jsonl"), before).expect("one of before");
        let ledger = Ledger::open(folder.path()).expect("it is read");
        assert!(is_refused(&ledger, 99, "x"));
        assert!(!is_refused(&ledger, 101, "x"));
    }

    #[test]
    fn a_torn_line_is_left_out_and_a_wrong_one_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let orders = orders();
        let a = orders.of("UNIT001", "a.service").expect("it is allowed");
        let mut ledger = Ledger::open(folder.path()).expect("it is made");
        ledger.note(&a, &at(1, 1, "x")).expect("it is written");
        let path = folder.path().join("acts.jsonl");
        let mut text = fs::read(&path).expect("it is there");
        text.extend(br#"{"wall_ns":12,"co"#);
        fs::write(&path, &text).expect("it is torn");
        let ledger = Ledger::open(folder.path()).expect("it is read");
        assert_eq!(ledger.entries.len(), 1);
        text.push(b'\n');
        fs::write(&path, &text).expect("it is wrong");
        let error = Ledger::open(folder.path())
            .expect_err("refused")
            .to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
