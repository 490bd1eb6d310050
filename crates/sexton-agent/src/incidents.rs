//! Incidents: what the ring held around the opening of a serious finding, kept as a bundle of
//! its own, whatever the ring drops later.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sexton_analysis::live::{Change, Turn};
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;
use sexton_model::wall::WallClock;
use sexton_store::{BundleWriter, StoreError, keep_window};

/// What is kept from before a finding opened, and from after it.
const BEFORE: Duration = Duration::from_secs(600);
const AFTER: Duration = Duration::from_secs(300);

/// Findings that open meanwhile belong to the same incident, which is never longer.
const LONGEST: Duration = Duration::from_secs(1800);

/// What says so, in the folder of the bundle.
const FILE: &str = "incident.json";

/// One incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// `sexton.incident/1`.
    pub schema: String,
    /// The name of its folder.
    pub name: String,
    /// The finding that opened it, `CODE:subject`.
    pub finding: String,
    /// What was wrong, in one line.
    pub title: String,
    /// How bad that was.
    pub severity: String,
    /// Other findings that opened meanwhile.
    pub others: Vec<String>,
    /// The boot it belongs to.
    pub boot_id: String,
    /// When it opened.
    pub opened_ns: u64,
    /// The same, in nanoseconds since 1970.
    pub opened_wall_ns: u64,
    /// What is kept: from when.
    pub from_ns: u64,
    /// What is kept: until when.
    pub to_ns: u64,
    /// Whether all of it is kept; until then the end is still awaited.
    pub is_whole: bool,
    /// Its size.
    pub bytes: u64,
}

/// The incidents of a ring.
#[derive(Debug)]
pub struct Incidents {
    folder: PathBuf,
    open: Option<Incident>,
}

impl Incidents {
    /// Those in a folder; one of this boot that was not finished is gone on with.
    pub fn open(folder: &Path, boot_id: &str) -> Self {
        let mut all = Self::list(folder).into_iter();
        let open = all.find(|incident| !incident.is_whole && incident.boot_id == boot_id);
        Self {
            folder: folder.to_owned(),
            open,
        }
    }

    /// All of a folder, oldest first. What cannot be read is no incident.
    pub fn list(folder: &Path) -> Vec<Incident> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut all: Vec<Incident> = entries
            .filter_map(|entry| {
                let json = fs::read(entry.path().join(FILE)).ok()?;
                let incident: Incident = serde_json::from_slice(&json).ok()?;
                (entry.file_name().to_str() == Some(&incident.name)).then_some(incident)
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Takes what changed: a serious finding that opens, worsens or comes back is an
    /// incident. Gives the name of a new one.
    pub(crate) fn take(
        &mut self,
        changes: &[Change],
        bundle: &Path,
        boot_id: &str,
        wall_ns: u64,
    ) -> Result<Option<String>, StoreError> {
        let mut opened = None;
        for change in changes {
            if !is_serious(change) {
                continue;
            }
            if self.join(change) {
                self.write()?;
            } else {
                opened = Some(self.begin(change, bundle, boot_id, wall_ns)?);
            }
        }
        Ok(opened)
    }

    /// Whether these changes begin an incident.
    pub(crate) fn begins_with(&self, changes: &[Change]) -> bool {
        self.open.is_none() && changes.iter().any(is_serious)
    }

    /// Keeps what was sealed meanwhile of the open incident.
    pub(crate) fn keep_so_far(&mut self, bundle: &Path) -> Result<(), StoreError> {
        self.keep(bundle)
    }

    /// Whether the change belongs to the incident that is being gathered.
    fn join(&mut self, change: &Change) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        let id = change.life.finding.id().to_string();
        if id != open.finding && !open.others.contains(&id) {
            open.others.push(id);
        }
        let latest = Moment::from_ns(open.opened_ns).after(LONGEST - BEFORE);
        open.to_ns = change.at.after(AFTER).min(latest).as_ns().max(open.to_ns);
        true
    }

    fn begin(
        &mut self,
        change: &Change,
        bundle: &Path,
        boot_id: &str,
        wall_ns: u64,
    ) -> Result<String, StoreError> {
        let finding = &change.life.finding;
        let name = self.name(change.at, wall_ns, finding.code);
        let before = u64::try_from(BEFORE.as_nanos()).unwrap_or(u64::MAX);
        let incident = Incident {
            schema: "sexton.incident/1".into(),
            name: name.clone(),
            finding: finding.id().to_string(),
            title: finding.title.clone(),
            severity: finding.severity.name().to_owned(),
            others: Vec::new(),
            boot_id: boot_id.to_owned(),
            opened_ns: change.at.as_ns(),
            opened_wall_ns: wall_ns,
            from_ns: change.at.as_ns().saturating_sub(before),
            to_ns: change.at.after(AFTER).as_ns(),
            is_whole: false,
            bytes: 0,
        };
        self.open = Some(incident);
        // What is sealed already is kept at once: the ring may drop it meanwhile.
        self.keep(bundle)?;
        Ok(name)
    }

    /// `20261118T031200Z-NIC001`, with a number if that is taken.
    fn name(&self, at: Moment, wall_ns: u64, code: &str) -> String {
        let clock = WallClock::new(vec![(at, wall_ns)]);
        let time = clock.rfc3339(at).unwrap_or_default();
        let time: String = time
            .chars()
            .take(19)
            .filter(|c| !"-:".contains(*c))
            .collect();
        let name = format!("{time}Z-{code}");
        let taken = |name: &str| self.folder.join(name).exists();
        let more = (2..).map(|n| format!("{name}-{n}"));
        std::iter::once(name.clone())
            .chain(more)
            .find(|name| !taken(name))
            .unwrap_or(name)
    }

    /// Whether the open incident has all it waits for.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| now.as_ns() > open.to_ns)
    }

    /// Ends the open incident: what is open in the ring is sealed, and kept.
    pub(crate) fn finish(
        &mut self,
        writer: &mut BundleWriter,
        bundle: &Path,
        now: Moment,
    ) -> Result<(), StoreError> {
        writer.seal_now(now)?;
        if let Some(open) = &mut self.open {
            open.is_whole = true;
        }
        self.keep(bundle)?;
        self.open = None;
        Ok(())
    }

    /// Ends what an earlier boot left unfinished, from what the ring holds of that boot.
    pub(crate) fn finish_earlier(&self, ring: &sexton_store::Ring, boot_id: &str) {
        for mut incident in Self::list(&self.folder) {
            if incident.is_whole || incident.boot_id == boot_id {
                continue;
            }
            incident.is_whole = true;
            let boot = ring.boot_of(&incident.boot_id);
            // What cannot be kept any more is not there any more.
            let mut earlier = Self {
                folder: self.folder.clone(),
                open: Some(incident),
            };
            let _ = boot.and_then(|boot| earlier.keep(&boot.records));
        }
    }

    /// Drops the oldest until these bounds hold; the open one stays.
    pub(crate) fn bound(&self, most: usize, most_bytes: u64) -> io::Result<()> {
        let mut all = Self::list(&self.folder);
        let bytes = |all: &[Incident]| all.iter().map(|incident| incident.bytes).sum::<u64>();
        let is_open = |name: &str| self.open.as_ref().is_some_and(|open| open.name == name);
        while all.len() > most || bytes(&all) > most_bytes {
            let Some(i) = all.iter().position(|incident| !is_open(&incident.name)) else {
                return Ok(());
            };
            fs::remove_dir_all(self.folder.join(&all.remove(i).name))?;
        }
        Ok(())
    }

    fn keep(&mut self, bundle: &Path) -> Result<(), StoreError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let window = Moment::from_ns(open.from_ns)..=Moment::from_ns(open.to_ns);
        let kept = keep_window(bundle, &self.folder.join(&open.name), window)?;
        open.bytes = kept.bytes;
        self.write()
    }

    fn write(&self) -> Result<(), StoreError> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let folder = self.folder.join(&open.name);
        let json = serde_json::to_vec_pretty(open).unwrap_or_default();
        let (tmp, file) = (folder.join("incident.tmp"), folder.join(FILE));
        let written = fs::write(&tmp, json).and_then(|()| fs::rename(&tmp, &file));
        written.map_err(|source| StoreError::Io {
            doing: "write",
            path: file,
            source,
        })
    }
}

fn is_serious(change: &Change) -> bool {
    change.life.finding.severity >= Severity::Serious && change.turn != Turn::Resolved
}

#[cfg(test)]
mod tests;
