//! How the agent is, for its socket, its metrics and systemd.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::boot_proof::BootProof;

/// The schema of the status.
pub(crate) const SCHEMA: &str = "sexton.status/1";

/// How the agent is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// `sexton.status/1`.
    pub schema: String,
    /// The version of the agent.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started, in nanoseconds since 1970.
    pub started_wall_ns: u64,
    /// When this was written, in nanoseconds since 1970.
    pub now_wall_ns: u64,
    /// When the agent's loop last came round, on the clock of this process; none before that.
    #[serde(skip)]
    pub stepped: Option<Instant>,
    /// Where the ring is.
    pub ring: PathBuf,
    /// The bundle of this boot.
    pub bundle: PathBuf,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Of these, bytes of earlier boots and of the findings log.
    pub ring_bytes_beside: u64,
    /// The most bytes the ring may have.
    pub ring_max_bytes: u64,
    /// Boots in the ring.
    pub boots: usize,
    /// Records that this agent has kept.
    pub records: u64,
    /// Samples of stacks that this agent has kept.
    pub samples: u64,
    /// What keeps it from writing, if anything does.
    pub disk_trouble: Option<String>,
    /// The sensors.
    pub sensors: BTreeMap<String, SensorStatus>,
    /// The part of one core that it used in the last minute; none before the first.
    pub cpu_ratio: Option<f64>,
    /// The limit of that.
    pub cpu_limit_ratio: f64,
    /// Its resident memory.
    pub memory_bytes: u64,
    /// The limit of that.
    pub memory_limit_bytes: u64,
    /// The verdict; none before the first.
    pub state: Option<String>,
    /// The verdict in one sentence.
    pub headline: String,
    /// When the node was last judged, in nanoseconds since 1970.
    pub judged_wall_ns: Option<u64>,
    /// How long that took.
    pub judge_ns: u64,
    /// Records in the sliding window.
    pub window_records: usize,
    /// Findings that are open.
    pub findings: Vec<FindingStatus>,
    /// What passes which limit when, if it grows on as it does.
    pub forecasts: Vec<ForecastStatus>,
    /// What was open before the last reboot, and whether it is proved to be gone.
    pub boot_proofs: Vec<BootProof>,
    /// How telling Kubernetes goes; none when it is off.
    pub kubernetes: Option<KubernetesStatus>,
    /// What was done without a person, newest last.
    pub acts: Vec<ActStatus>,
    /// How reporting to the fleet's bucket goes; none when it is off.
    pub fleet: Option<FleetStatus>,
    /// How sending to receivers goes: one for each kind of data and receiver.
    pub exports: Vec<ExportStatus>,
    /// Incidents that are kept.
    pub incidents: usize,
    /// Their bytes.
    pub incident_bytes: u64,
    /// Where the page is served.
    pub http: Option<String>,
    /// Settings of a reload that need a restart.
    pub needs_restart: Vec<String>,
}

/// How telling the API server of Kubernetes goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KubernetesStatus {
    /// The name of the node there.
    pub node: String,
    /// Requests that were made.
    pub requests: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Turns of findings that were dropped before they could be told.
    pub dropped: u64,
    /// What keeps it from telling, while something does.
    pub trouble: Option<String>,
}

/// What sexton did, or would have done, without a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActStatus {
    /// When, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The code of the finding.
    pub code: String,
    /// What it is about.
    pub origin: String,
    /// `done`, `planned` (a dry run), `refused`, `unconfirmed` or `failed`.
    pub outcome: String,
    /// The acts of the configuration: `mask`.
    pub acts: Vec<String>,
    /// What was done, or why not.
    pub text: String,
    /// The file that takes it back.
    pub undo_file: Option<PathBuf>,
}

/// How reporting to the fleet's bucket goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetStatus {
    /// The address of the bucket.
    pub lake: String,
    /// Reports that are in the bucket.
    pub sent: u64,
    /// Reports that wait in the spool.
    pub waiting: usize,
    /// Reports that were dropped because the spool was full.
    pub dropped: u64,
    /// How often sending failed.
    pub failed: u64,
    /// When a report was last sent, in nanoseconds since 1970.
    pub sent_wall_ns: Option<u64>,
    /// What keeps it from sending, while something does.
    pub trouble: Option<String>,
}

/// How sending one kind of data to a receiver goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportStatus {
    /// `otlp-metrics`, `otlp-logs`, `otlp-profiles`, `pyroscope`, `parca`.
    pub channel: String,
    /// Windows that the receiver took, at least in part.
    pub sent: u64,
    /// Bytes of requests that it took.
    pub sent_bytes: u64,
    /// Requests that were made.
    pub requests: u64,
    /// Requests that it refused for good, and items that it left out.
    pub refused: u64,
    /// Windows that were dropped: older than it takes, or gone from the ring.
    pub dropped: u64,
    /// Stacks that were cut to the depth that it takes.
    pub cut: u64,
    /// Samples whose owner was folded into `other`.
    pub folded: u64,
    /// Age of the last window that was sent or is waiting.
    pub lag_seconds: f64,
    /// What keeps it from sending, while something does.
    pub trouble: Option<String>,
}

/// How a sensor is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SensorStatus {
    /// `on`, `blind`, `off` (by the settings) or `shed`.
    pub state: String,
    /// Why it does not see.
    pub why: Option<String>,
}

/// An open finding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingStatus {
    /// `CODE:subject`.
    pub id: String,
    /// The code of the rule.
    pub code: String,
    /// What it is about.
    pub subject: String,
    /// How bad it is.
    pub severity: String,
    /// What is wrong.
    pub title: String,
    /// When it opened, in nanoseconds since 1970.
    pub opened_wall_ns: u64,
}

/// When a limit is passed at the present rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecastStatus {
    /// What grows.
    pub what: String,
    /// Which limit it passes.
    pub limit: String,
    /// In this number of days.
    pub in_days: f64,
}

/// The status as the agent and those who ask share it.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<Status>>);

impl Shared {
    /// A copy of it.
    pub fn get(&self) -> Status {
        self.lock().clone()
    }

    /// Changes it.
    pub fn change(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
