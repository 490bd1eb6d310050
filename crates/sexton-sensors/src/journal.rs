//! Tells when units write to systemd's journal, and what those that fail wrote last.
//!
//! Source: the journal's own files, `system.journal` below `/run/log/journal` and
//! `/var/log/journal`. A supervisor that tries again says so; where it says so in step with
//! births of containers, it is behind them though systemd sees it healthy.
//! Blind to: what units write that do not fail, units of users, journals that are forwarded and
//! not kept.
//! Overhead: `docs/overhead.md#journal`.

mod failures;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_model::fact::unit::{UNIT_LAST_LINES, UNIT_LOGGED, UnitLogged};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_systemd::journal::{Bytes, Entries, Header, WRITER, Written};

use crate::{Sensor, SensorSpec};
use failures::Failures;

const NAME: &str = "journal";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "systemd's journal: when units write to it, and the last lines of those that fail",
    emits: &[&UNIT_LOGGED.fact, &UNIT_LAST_LINES.fact],
    every: Duration::from_secs(1),
    deadline: Duration::from_secs(2),
    examine,
    open,
};

const FOLDERS: [&str; 2] = ["/run/log/journal", "/var/log/journal"];

/// The file that is written to; others are archives, or those of users.
const FILE: &str = "system.journal";

/// Machines whose journals lie in one folder; one is usual.
const MACHINES_MAX: usize = 8;

/// How far back the first look goes: as far as the runtimes of containers are asked.
const HISTORY: Duration = Duration::from_secs(600);

/// Entries of one unit that are looked at in one poll. A unit that writes more writes all the
/// time, and is in step with everything.
const ENTRIES_MAX: u64 = 128;

/// Entries of one unit that are closer together are one.
const TOGETHER: Duration = Duration::from_secs(1);

const NO_JOURNAL: &str = "there is no file of systemd's journal here";

struct Journal {
    boot_id: [u8; 16],
    files: BTreeMap<PathBuf, Known>,
}

/// What is known of one file.
struct Known {
    file_id: [u8; 16],
    n_entries: u64,
    field: Option<u64>,
    /// Units by the place of their object: name, and entries that were seen.
    units: HashMap<u64, (Subject, u64)>,
    failures: Failures,
    is_bad: bool,
}

fn files(host: &Host) -> Result<Vec<PathBuf>, Gap> {
    let mut found = Vec::new();
    let mut denied = None;
    for folder in FOLDERS {
        let machines = match host.list(folder) {
            Ok(machines) => machines,
            Err(error) if error.is_absent() => continue,
            Err(error) => {
                denied = Some(error);
                continue;
            }
        };
        let machines = machines.into_iter().take(MACHINES_MAX);
        let all = machines.map(|machine| Path::new(folder).join(machine.name).join(FILE));
        found.extend(all.filter(|path| host.root().meta(path).is_ok()));
    }
    match (found.is_empty(), denied) {
        (false, _) => Ok(found),
        (true, Some(error)) => Err(Gap::new(NAME, error.why(), error.chain())),
        (true, None) => Err(Gap::new(NAME, Why::Unsupported, NO_JOURNAL)),
    }
}

fn examine(host: &Host) -> Vec<Sight> {
    const WHAT: &str = "units that write to the journal";
    vec![match readable(host) {
        Ok(path) => Sight::sees(WHAT, format!("by the head of {}", path.display())),
        Err(gap) => Sight::blind(WHAT, gap.text),
    }]
}

/// A file that may be read.
fn readable(host: &Host) -> Result<PathBuf, Gap> {
    let path = files(host)?.remove(0);
    match Header::read(&Place { host, path: &path }) {
        Ok(_) => Ok(path),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Gap {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => Why::Denied,
        io::ErrorKind::NotFound => Why::Vanished,
        _ => Why::Malformed,
    };
    let gap = Gap::new(
        NAME,
        why,
        format!("cannot read {}: {error}", path.display()),
    );
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            gap.with_remedy("run as root, or as a member of the group systemd-journal")
        }
        _ => gap,
    }
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    readable(host)?;
    let boot_id = host.read_text("/proc/sys/kernel/random/boot_id");
    let boot_id = boot_id.map_err(|error| Gap::new(NAME, error.why(), error.chain()))?;
    Ok(Box::new(Journal {
        boot_id: parse_id(&boot_id),
        files: BTreeMap::new(),
    }))
}

/// `0123abcd-…` as bytes; what is no digit is passed over.
fn parse_id(text: &str) -> [u8; 16] {
    let digits = text.chars().filter_map(|c| c.to_digit(16));
    let digits: Vec<u8> = digits
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    id
}

impl Sensor for Journal {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let files = match files(host) {
            Ok(files) => files,
            Err(gap) => return out.gap(&Subject::node(), gap),
        };
        self.files.retain(|path, _| files.contains(path));
        for path in files {
            let bytes = Place { host, path: &path };
            if let Err(error) = self.look(&path, &bytes, out)
                && self.files.get(&path).is_none_or(|known| !known.is_bad)
            {
                // Told once for each file; a new one is tried again.
                if let Some(known) = self.files.get_mut(&path) {
                    known.is_bad = true;
                }
                out.gap(&Subject::node(), unreadable(&path, &error));
            }
        }
    }
}

impl Journal {
    fn look(&mut self, path: &Path, bytes: &dyn Bytes, out: &mut Sink) -> io::Result<()> {
        let header = Header::read(bytes)?;
        let is_new = self
            .files
            .get(path)
            .is_none_or(|known| known.file_id != header.file_id);
        if is_new {
            let known = Known {
                file_id: header.file_id,
                n_entries: 0,
                field: None,
                units: HashMap::new(),
                failures: Failures::default(),
                is_bad: false,
            };
            self.files.insert(path.to_owned(), known);
        }
        let Some(known) = self.files.get_mut(path) else {
            return Ok(());
        };
        if known.is_bad || known.n_entries == header.n_entries {
            return Ok(());
        }
        known.n_entries = header.n_entries;
        if known.field.is_none() {
            known.field = header.field(bytes, WRITER)?;
        }
        let Some(field) = known.field else {
            return Ok(());
        };
        let is_known = |offset| known.units.contains_key(&offset);
        for unit in header.values(bytes, (field, WRITER), &is_known)? {
            let subject = Subject::new(SubjectKind::Unit, unit.value.as_str());
            known.units.insert(unit.offset, (subject, 0));
        }
        for (offset, (subject, seen)) in &mut known.units {
            let n = Header::n_of(bytes, *offset)?;
            if n > *seen {
                let unit: Entries = header.value(bytes, *offset, WRITER)?;
                let most = unit.n.saturating_sub(*seen).min(ENTRIES_MAX);
                let written = header.last(bytes, &unit, most)?;
                tell(&written, &self.boot_id, subject, out);
                *seen = unit.n;
            }
        }
        let Known {
            units, failures, ..
        } = known;
        failures.look((&header, bytes), &self.boot_id, units, out)
    }
}

/// Tells when a unit wrote, entries close together as one.
fn tell(written: &[Written], boot_id: &[u8; 16], unit: &Subject, out: &mut Sink) {
    let since = out.now().as_ns().saturating_sub(HISTORY.as_nanos() as u64);
    let moments = written
        .iter()
        .filter(|entry| entry.boot_id == *boot_id)
        .map(|entry| clock::of_monotonic(entry.monotonic_us.saturating_mul(1_000)))
        .filter(|at| at.as_ns() >= since);
    let mut groups: Vec<(Moment, u64)> = Vec::new();
    for at in moments {
        match groups.last_mut() {
            Some((first, n)) if at.since(*first) < TOGETHER => *n += 1,
            _ => groups.push((at, 1)),
        }
    }
    for (at, n) in groups {
        out.event(at, unit, &UNIT_LOGGED, UnitLogged { n });
    }
}

/// A file of the node.
struct Place<'a> {
    host: &'a Host,
    path: &'a Path,
}

impl Bytes for Place<'_> {
    fn at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let found = self.host.root().read_at(self.path, offset, len)?;
        match found.len() == len {
            true => Ok(found),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
