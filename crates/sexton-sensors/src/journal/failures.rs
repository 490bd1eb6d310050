//! How units that failed or were restarted ended, and what they wrote last.
//!
//! systemd marks its own entries about a process that ended badly, a failed run and a restart that
//! it plans by an id each, and the journal leads from the id to the entries: only units that are
//! in trouble are looked at, and only their last lines are kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::time::Duration;

use sexton_model::fact::unit::{UNIT_LAST_LINES, UnitLastLines};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;
use sexton_systemd::journal::{Bytes, Header, MESSAGE_ID, WRITER, Written};

/// A process ended badly, a run failed, a restart was planned: `SD_MESSAGE_UNIT_PROCESS_EXIT`,
/// `SD_MESSAGE_UNIT_FAILURE_RESULT` and `SD_MESSAGE_UNIT_RESTART_SCHEDULED` of `sd-messages.h`.
const IDS: [&str; 3] = [
    "98e322203f7a4ed290d09fe03c09fe15",
    "d9b373ed55a64feb8242e02dbe79a49c",
    "5eb03494b6584870a536b337290809b3",
];

/// The field by which systemd names the unit that its own entry is about.
const ABOUT: &str = "UNIT";

/// How a process ended, in systemd's words, and its exit status or the number of the signal.
const EXIT_CODE: &str = "EXIT_CODE";
const EXIT_STATUS: &str = "EXIT_STATUS";

/// A loop of one restart a second is seen as well with one look in five.
const EVERY: Duration = Duration::from_secs(5);

/// Entries of each id in one look: the newest, of which most are of the same few units.
const ENTRIES_MAX: u64 = 16;

/// The lines of one unit are looked at no more often.
const SAME_UNIT: Duration = Duration::from_secs(30);

/// Units in one look.
const UNITS_MAX: usize = 8;

/// Units that are remembered, so that their lines are told only when they change.
const REMEMBERED_MAX: usize = 256;

/// Lines that are kept of a unit, and characters of a line.
const LINES: usize = 3;
const LINE_CHARS: usize = 200;

/// Failures in one file of the journal.
#[derive(Default)]
pub(super) struct Failures {
    looked: Option<Moment>,
    /// The object of the field that holds ids.
    field: Option<u64>,
    /// Values of that field that were seen.
    values: HashSet<u64>,
    /// The values that mark failures, and entries of each that were seen.
    marks: BTreeMap<u64, u64>,
    /// When each unit was looked at, and what it had written.
    told: HashMap<String, (Moment, UnitLastLines)>,
}

/// How a process of a unit ended, if that is known.
type End = Option<(String, String)>;

impl Failures {
    /// Tells the last lines of units that failed since the look before.
    pub(super) fn look(
        &mut self,
        (header, bytes): (&Header, &dyn Bytes),
        boot_id: &[u8; 16],
        writers: &HashMap<u64, (Subject, u64)>,
        out: &mut Sink,
    ) -> io::Result<()> {
        let now = out.now();
        if self.looked.is_some_and(|last| now.since(last) < EVERY) {
            return Ok(());
        }
        self.looked = Some(now);
        self.find_marks(header, bytes)?;
        let failed = self.failed(header, bytes, boot_id)?;
        let due = |(unit, _): &(String, End)| match self.told.get(unit) {
            Some((last, _)) => now.since(*last) >= SAME_UNIT,
            None => true,
        };
        let due: Vec<(String, End)> = failed.into_iter().filter(due).take(UNITS_MAX).collect();
        for (unit, end) in due {
            let writer = writers
                .iter()
                .find(|(_, (subject, _))| *subject.name == *unit);
            let lines = match writer {
                Some((offset, _)) => lines(header, bytes, *offset, boot_id)?,
                None => Vec::new(),
            };
            if self.told.len() >= REMEMBERED_MAX {
                self.told.clear();
            }
            let (exit_code, exit_status) = end.unzip();
            let says = UnitLastLines {
                lines,
                exit_code,
                exit_status,
            };
            let before = self.told.insert(unit.clone(), (now, says.clone()));
            let is_new = before.is_none_or(|(_, before)| before != says);
            if is_new && says != UnitLastLines::default() {
                let unit = Subject::new(SubjectKind::Unit, unit.as_str());
                out.event(now, &unit, &UNIT_LAST_LINES, says);
            }
        }
        Ok(())
    }

    /// Where the ids are, as soon as an entry has one.
    fn find_marks(&mut self, header: &Header, bytes: &dyn Bytes) -> io::Result<()> {
        if self.marks.len() == IDS.len() {
            return Ok(());
        }
        if self.field.is_none() {
            self.field = header.field(bytes, MESSAGE_ID)?;
        }
        let Some(field) = self.field else {
            return Ok(());
        };
        let is_known = |offset| self.values.contains(&offset);
        for value in header.values(bytes, (field, MESSAGE_ID), &is_known)? {
            if IDS.contains(&value.value.as_str()) {
                self.marks.insert(value.offset, 0);
            }
            self.values.insert(value.offset);
        }
        Ok(())
    }

    /// Units that new entries of systemd are about, and how each ended last.
    fn failed(
        &mut self,
        header: &Header,
        bytes: &dyn Bytes,
        boot_id: &[u8; 16],
    ) -> io::Result<BTreeMap<String, End>> {
        let mut units: BTreeMap<String, End> = BTreeMap::new();
        for (mark, seen) in &mut self.marks {
            let n = Header::n_of(bytes, *mark)?;
            let Some(n_new) = n.checked_sub(*seen).filter(|n| *n > 0) else {
                continue;
            };
            *seen = n;
            let entries = header.value(bytes, *mark, MESSAGE_ID)?;
            let written = header.last(bytes, &entries, n_new.min(ENTRIES_MAX))?;
            for entry in written.iter().filter(|entry| entry.boot_id == *boot_id) {
                let texts = header.texts(bytes, entry, &[ABOUT, EXIT_CODE, EXIT_STATUS])?;
                let text = |name: &str| {
                    let found = texts.iter().find(|(field, _)| *field == name);
                    found.map(|(_, value)| escape(value))
                };
                if let Some(unit) = text(ABOUT) {
                    let known = units.entry(unit).or_default();
                    *known = text(EXIT_CODE).zip(text(EXIT_STATUS)).or(known.take());
                }
            }
        }
        Ok(units)
    }
}

/// What a unit wrote last in this boot.
fn lines(
    header: &Header,
    bytes: &dyn Bytes,
    writer: u64,
    boot_id: &[u8; 16],
) -> io::Result<Vec<String>> {
    let entries = header.value(bytes, writer, WRITER)?;
    let written = header.last(bytes, &entries, LINES as u64)?;
    let of_this_boot = |entry: &&Written| entry.boot_id == *boot_id;
    let mut lines = Vec::new();
    for entry in written.iter().filter(of_this_boot) {
        for (_, message) in header.texts(bytes, entry, &["MESSAGE"])? {
            let line = escape(message.trim_ascii());
            if !line.is_empty() {
                lines.push(line.chars().take(LINE_CHARS).collect());
            }
        }
    }
    Ok(lines)
}
