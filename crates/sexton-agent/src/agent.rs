//! The agent: records into a ring, judges all the time, keeps incidents, stays within its
//! budget. Once it runs, nothing but a signal ends it: what fails is logged, shown in the
//! status, and tried again.

mod acting;
mod judging;
mod keeping;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_analysis::live::{Lives, Step, Stepper};
use sexton_host::{Host, clock, own};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_store::{Boot, BundleWriter, Held, Ring, StoreError};

use crate::boot_proof::{BootProof, Watched};
use crate::budget::Meter;
use crate::findings::{FindingsLog, Lived};
use crate::incidents::Incidents;
use crate::limit::OwnLimit;
use crate::pool::SensorPool;
use crate::recorder::{Progress, RecordError};
use crate::settings::Settings;
use crate::status::{SensorStatus, Shared};

/// How grave a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The agent cannot do its job.
    Error,
    /// It sees less than it should, or something opened.
    Warning,
    /// Start, stop, reload, and what is over.
    Info,
}

/// Where lines of the log go.
pub type Log = Box<dyn FnMut(Level, &str) + Send>;

/// Who is shown what the sensors said, as it passes.
pub type Tap = Box<dyn FnMut(&[Record]) + Send>;

/// What is known after a verdict.
#[derive(Debug)]
pub struct Judged<'a> {
    /// The verdict, and what changed with it.
    pub step: &'a Step,
    /// The lives of findings.
    pub lives: &'a Lives,
    /// What was open before the last reboot, and what became of it.
    pub boot_proofs: &'a [BootProof],
}

/// Who is told each verdict.
pub type OnVerdict = Box<dyn FnMut(&Judged<'_>) + Send>;

/// Why an agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Another agent has the ring, or it cannot be written.
    #[error("cannot use the ring")]
    Ring(#[source] StoreError),
    /// The node does not say which one it is, or nothing can be recorded.
    #[error("cannot start recording")]
    Record(#[source] RecordError),
}

/// An agent at work.
pub struct Agent {
    settings: Settings,
    ring: Ring,
    boot: Boot,
    host: Arc<Host>,
    pool: SensorPool,
    writer: BundleWriter,
    findings: FindingsLog,
    stepper: Stepper,
    incidents: Incidents,
    keeping: judging::Retry,
    meter: Meter,
    /// The limit of our own cgroup, and when it was last looked at.
    limit: Option<OwnLimit>,
    limit_looked: Instant,
    progress: Progress,
    shared: Shared,
    log: Log,
    tap: Option<Tap>,
    on_verdict: Option<OnVerdict>,
    /// What was open when the boots before this one ended.
    open_before: Vec<Lived>,
    boot_proofs: Vec<BootProof>,
    /// For how long what was open has been looked for in this boot, by this agent.
    watched: Watched,
    /// Up to when the ring holds the lines of these logs already.
    known_until: BTreeMap<&'static str, Moment>,
    synced: Instant,
    bounded: Option<Instant>,
    trouble: Option<String>,
    off: BTreeSet<String>,
    _held: Held,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("ring", &self.ring)
            .field("boot", &self.boot)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// The bundle of this boot.
    pub fn bundle(&self) -> &Path {
        &self.boot.records
    }

    /// Hands every record from now on to this function, before it is judged.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// Hands every verdict from now on to this function.
    pub fn set_on_verdict(&mut self, tell: OnVerdict) {
        self.on_verdict = Some(tell);
    }

    /// Works for a while.
    pub fn step(&mut self, time: Duration) {
        let mut records = self.pool.collect(time);
        self.leave_out_known(&mut records);
        let now = clock::now();
        records.extend(self.measure(now));
        records.extend(self.stay_alive(now));
        self.keep(&records, now);
        if let Some(tap) = &mut self.tap {
            tap(&records);
        }
        let n_records = records.len();
        for record in records {
            self.progress.note(&record);
            self.stepper.take(record);
        }
        self.judge_if_due(now);
        self.tell();
        if n_records >= MANY_RECORDS {
            own::give_back_memory();
        }
    }

    /// Takes other settings as far as that works without a restart. Gives the names of those
    /// that wait for one, also of what waits elsewhere.
    pub fn reload(&mut self, settings: Settings, elsewhere: Vec<String>) -> Vec<String> {
        let mut waiting = elsewhere;
        if settings.ring != self.settings.ring {
            waiting.push("ring.path".to_owned());
        }
        let beats = |settings: &Settings| -> Vec<(&'static str, Duration)> {
            let members = settings.members.iter();
            members
                .map(|member| (member.spec.name, member.every))
                .collect()
        };
        let sensors = "sensors".to_owned();
        if beats(&settings) != beats(&self.settings) && !waiting.contains(&sensors) {
            waiting.push(sensors);
        }
        self.stepper.set_policy(settings.policy.clone());
        let members = std::mem::take(&mut self.settings.members);
        let ring = std::mem::take(&mut self.settings.ring);
        self.settings = Settings {
            members,
            ring,
            ..settings
        };
        self.bounded = None;
        self.shared.change(|status| {
            status.needs_restart.clone_from(&waiting);
        });
        waiting
    }

    /// Ends it: everything is sealed.
    pub fn finish(mut self) -> Result<(), StoreError> {
        let pool = std::mem::replace(&mut self.pool, SensorPool::start(&self.host, &[]));
        let (records, stacks) = pool.stop_with_stacks();
        let now = clock::now();
        self.writer.append(&records)?;
        for batch in &stacks {
            self.writer.append_stacks(&batch.samples, &batch.tables)?;
        }
        self.findings.finish(now)?;
        self.writer.finish(now)?;
        self.incidents.keep_so_far(&self.boot.records)
    }

    fn say(&mut self, level: Level, text: &str) {
        (self.log)(level, text);
    }

    /// What was recorded of the logs by an agent before this one, or before their sensor was
    /// stopped for a while, is not recorded again.
    fn leave_out_known(&self, records: &mut Vec<Record>) {
        if self.known_until.is_empty() {
            return;
        }
        records.retain(|record| {
            let until = self.known_until.get(record.sensor.as_ref());
            until.is_none_or(|until| record.at > *until || record.value().is_some())
        });
    }

    /// Renews the status.
    fn tell(&mut self) {
        let (bytes, progress) = (self.writer.bytes(), &self.progress);
        let sensors = self.settings.members.iter().map(|member| member.spec.name);
        let sensors = sensors.map(|name| {
            let why = progress.blind.get(name).cloned();
            let state = match (self.meter.is_shed(name), &why) {
                (true, _) => "shed",
                (false, Some(_)) => "blind",
                (false, None) => "on",
            };
            let state = state.to_owned();
            (name.to_owned(), SensorStatus { state, why })
        });
        let off = self.off.iter().map(|name| {
            let state = "off".to_owned();
            (name.clone(), SensorStatus { state, why: None })
        });
        let sensors = sensors.chain(off).collect();
        let trouble = self.trouble.clone();
        self.shared.change(|status| {
            status.now_wall_ns = clock::wall_ns();
            status.stepped = Some(Instant::now());
            status.records = progress.n_records;
            status.samples = progress.n_samples;
            status.ring_bytes = bytes + status.ring_bytes_beside;
            status.sensors = sensors;
            status.disk_trouble = trouble;
        });
    }
}

/// After this number of records in one step, memory is given back at once.
const MANY_RECORDS: usize = 2_000;
