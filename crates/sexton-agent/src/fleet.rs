//! Reports to the fleet's bucket: gathers what passes, closes a report at each turn of the
//! hour, and hands it to the thread that keeps and sends it.

mod child;
mod sender;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sexton_analysis::live::Turn;
use sexton_host::clock;
use sexton_lake::{Gathered, Given, Made, Report, Told, identity_facts, report_of};
use sexton_model::diagnosis::Diagnosis;
use sexton_model::finding::{Finding, FindingId, Severity};
use sexton_model::moment::Moment;
use sexton_model::node::Node;
use sexton_model::record::Record;
use sexton_model::wall::WallClock;
use sexton_store::{Boot, Bundle};

use crate::agent::{Judged, Log, OnVerdict, Tap};
use crate::findings::lives_of;
use crate::status::{FleetStatus, Shared};
use sender::Sender;

/// Before 2020 the clock of a node is not set: its reports would be of no day.
const CLOCK_IS_SET_NS: u64 = 1_577_836_800_000_000_000;

/// Some sensor says something each second. Where the ring says nothing for longer, no agent ran.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Reports that are remembered, to give those of the same time another one each.
const MAX_CLOSED: usize = 64;

/// The time of a report that follows another one of the same time, because the clock was set back.
const PART_US: i64 = 1_000_000;

/// What the agent is told about the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSettings {
    /// The bucket.
    pub lake: Lake,
    /// How long each report covers.
    pub every: Duration,
    /// Where reports wait.
    pub spool: PathBuf,
    /// Which node: name, kernel and boot.
    pub node: NodeName,
    /// Labels, and what is left out.
    pub given: Given,
}

/// Which node, as its reports say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeName {
    /// Its name.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// Its boot.
    pub boot_id: String,
}

/// Where reports go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lake {
    /// A folder, which the agent writes to itself.
    Folder(PathBuf),
    /// A bucket of a cloud, which this program writes to: started each time the spool is sent.
    Cloud {
        /// The address of the bucket.
        url: String,
        /// `sexton-fleet`.
        program: PathBuf,
    },
}

impl Lake {
    /// Its address, for people.
    pub fn address(&self) -> String {
        match self {
            Self::Folder(folder) => folder.display().to_string(),
            Self::Cloud { url, .. } => url.clone(),
        }
    }
}

/// Reports of this agent.
#[derive(Debug)]
pub struct Fleet {
    reporter: Arc<Mutex<Reporter>>,
    sender: Arc<Sender>,
}

impl Fleet {
    /// Begins to report. What the ring holds of the begun hour is read back, so that an agent
    /// that was restarted tells of all of it.
    pub fn start(settings: FleetSettings, boot: &Boot, log: Log) -> std::io::Result<Self> {
        let mut reporter = Reporter::new(&settings, clock::wall_ns());
        reporter.read_back(boot, clock::now(), clock::wall_ns());
        let sender = Arc::new(Sender::start(settings, log)?);
        Ok(Self {
            reporter: Arc::new(Mutex::new(reporter)),
            sender,
        })
    }

    /// What the agent shows its records to.
    pub fn tap(&self) -> Tap {
        let (reporter, sender) = (Arc::clone(&self.reporter), Arc::clone(&self.sender));
        Box::new(move |records| {
            let mut reporter = lock(&reporter);
            let closed = reporter.turn(clock::now(), clock::wall_ns());
            records.iter().for_each(|record| reporter.take(record));
            if let Some(report) = closed {
                sender.send(report);
            }
        })
    }

    /// What the agent hands its verdicts to.
    pub fn on_verdict(&self) -> OnVerdict {
        let reporter = Arc::clone(&self.reporter);
        Box::new(move |judged| lock(&reporter).note(judged))
    }

    /// Puts how it goes into the agent's status.
    pub fn tell_status(&self, shared: &Shared) {
        let status: FleetStatus = self.sender.status();
        shared.change(|all| all.fleet = Some(status));
    }

    /// Ends it: what waits stays in the spool.
    pub fn stop(&self) {
        self.sender.stop();
    }
}

fn lock(reporter: &Mutex<Reporter>) -> MutexGuard<'_, Reporter> {
    reporter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is gathered for the report that is open.
#[derive(Debug)]
struct Reporter {
    every_ns: u64,
    node: Node,
    given: Given,
    /// When the open report began, in nanoseconds since 1970.
    begun_ns: u64,
    gathered: Gathered,
    /// How long no agent ran between the first and the last record of the open report.
    unwatched: Duration,
    diagnosis: Option<Diagnosis>,
    findings: BTreeMap<FindingId, Followed>,
    /// When the last reports began.
    closed: VecDeque<u64>,
}

#[derive(Debug)]
struct Followed {
    finding: Finding,
    worst: Severity,
    opened: Moment,
    resolved: Option<Moment>,
}

impl Reporter {
    fn new(settings: &FleetSettings, wall_ns: u64) -> Self {
        let every_ns = u64::try_from(settings.every.as_nanos()).unwrap_or(u64::MAX);
        let every_ns = every_ns.max(1);
        Self {
            every_ns,
            node: Node {
                name: settings.node.name.clone(),
                kernel: settings.node.kernel.clone(),
                boot_id: settings.node.boot_id.clone(),
                ..Node::default()
            },
            given: settings.given.clone(),
            begun_ns: wall_ns / every_ns * every_ns,
            gathered: Gathered::default(),
            unwatched: Duration::ZERO,
            diagnosis: None,
            findings: BTreeMap::new(),
            closed: VecDeque::new(),
        }
    }

    /// Takes what the ring holds of this boot: who the node is, and the begun time.
    fn read_back(&mut self, boot: &Boot, now: Moment, wall_ns: u64) {
        let begun = wall_ns.saturating_sub(self.begun_ns);
        let from = Moment::from_ns(now.as_ns().saturating_sub(begun));
        self.read_findings(boot, from);
        let Ok(bundle) = Bundle::open(&boot.records) else {
            return;
        };
        let before = Moment::from_ns(0)..=from;
        for record in bundle.stream(Some(before), Some(&identity_facts())) {
            self.gathered.take_identity(&record);
        }
        let mut last: Option<Moment> = None;
        for record in bundle.stream(Some(from..=now), None) {
            let silence = last.map_or(Duration::ZERO, |last| record.at.since(last));
            if silence > LONGEST_SILENCE {
                self.unwatched += silence;
            }
            last = last.max(Some(record.at));
            self.gathered.take(&record);
        }
        self.unwatched += last.map_or(Duration::ZERO, |last| now.since(last));
    }

    /// Takes the findings that were open at any time since then.
    fn read_findings(&mut self, boot: &Boot, from: Moment) {
        let Ok((lived, _)) = lives_of(&boot.findings) else {
            return;
        };
        let lives = lived.into_iter().map(|lived| lived.life);
        for life in lives.filter(|life| life.resolved.is_none_or(|at| at >= from)) {
            let worst = match life.worst_at >= from {
                true => life.worst,
                false => life.finding.severity,
            };
            let followed = Followed {
                worst,
                opened: life.opened,
                resolved: life.resolved,
                finding: life.finding,
            };
            self.findings.insert(followed.finding.id(), followed);
        }
    }

    fn take(&mut self, record: &Record) {
        self.gathered.take(record);
    }

    /// Follows the lives of findings.
    fn note(&mut self, judged: &Judged<'_>) {
        for life in judged.lives.open() {
            let finding = life.finding.clone();
            let severity = finding.severity;
            let followed = self
                .findings
                .entry(finding.id())
                .or_insert_with(|| Followed {
                    finding: finding.clone(),
                    worst: severity,
                    opened: life.opened,
                    resolved: None,
                });
            followed.worst = followed.worst.max(severity);
            followed.opened = life.opened;
            followed.resolved = None;
            followed.finding = finding;
        }
        let changes = judged.step.changes.iter();
        for change in changes.filter(|change| change.turn == Turn::Resolved) {
            if let Some(followed) = self.findings.get_mut(&change.life.finding.id()) {
                followed.resolved = change.life.resolved;
            }
        }
        self.diagnosis = Some(judged.step.diagnosis.clone());
    }

    /// Closes the report when its time is over, or when the clock was set.
    fn turn(&mut self, now: Moment, wall_ns: u64) -> Option<Report> {
        let begins_ns = wall_ns / self.every_ns * self.every_ns;
        if begins_ns == self.begun_ns {
            return None;
        }
        let at_ns = std::mem::replace(&mut self.begun_ns, begins_ns);
        let report = match at_ns >= CLOCK_IS_SET_NS {
            true => self.closed(at_ns, now, wall_ns),
            false => None,
        };
        self.gathered.begin();
        self.unwatched = Duration::ZERO;
        self.findings
            .retain(|_, followed| followed.resolved.is_none());
        for followed in self.findings.values_mut() {
            followed.worst = followed.finding.severity;
        }
        report
    }

    fn closed(&mut self, at_ns: u64, now: Moment, wall_ns: u64) -> Option<Report> {
        let (first, last) = self.gathered.span()?;
        // A clock that was set back comes to the same time again: a report of the same path would
        // not be taken.
        let n_before = self.closed.iter().filter(|at| **at == at_ns).count();
        self.closed.push_back(at_ns);
        if self.closed.len() > MAX_CLOSED {
            self.closed.pop_front();
        }
        let part = PART_US.saturating_mul(i64::try_from(n_before).ok()?);
        let findings = self.findings.values().map(|followed| Told {
            finding: &followed.finding,
            worst: followed.worst,
            opened: Some(followed.opened),
            resolved: followed.resolved,
        });
        let findings: Vec<Told<'_>> = findings.collect();
        let watched = last.since(first).saturating_sub(self.unwatched);
        Some(report_of(&Made {
            node: &self.node,
            clock: &WallClock::new(vec![(now, wall_ns)]),
            at_us: i64::try_from(at_ns / 1000).ok()?.saturating_add(part),
            watched: watched.min(Duration::from_nanos(self.every_ns)),
            gathered: &self.gathered,
            diagnosis: self.diagnosis.as_ref(),
            findings: &findings,
            given: &self.given,
        }))
    }
}

#[cfg(test)]
mod tests;
