//! What runs on a node: sensors, each on its own beat and within its deadline; a recorder that
//! keeps what they see; and the agent, which records into a ring, judges all the time, keeps
//! incidents, and stays within its budget.
//!
//! Every sensor has a thread of its own. A stuck one costs its own records and a gap
//! that says so, never those of the others; one that panics is benched.

mod agent;
mod boot_proof;
mod budget;
mod clock;
mod findings;
mod fleet;
mod incidents;
mod limit;
mod notify;
mod pool;
mod recorder;
mod settings;
mod socket;
mod status;

pub use agent::{Agent, AgentError, Judged, Level, Log, OnVerdict, Tap};
pub use boot_proof::BootProof;
pub use budget::SHED_ORDER;
pub use clock::ClockWatch;
pub use findings::{FindingsLog, Lived, lives_of};
pub use fleet::{Fleet, FleetSettings, Lake, NodeName};
pub use incidents::{Incident, Incidents};
pub use notify::Notify;
pub use pool::{Member, SensorPool};
pub use recorder::{Progress, RecordError, Recorder};
pub use settings::{Budget, Settings};
pub use socket::{ask, serve_status};
pub use status::{
    ActStatus, ExportStatus, FindingStatus, FleetStatus, ForecastStatus, KubernetesStatus,
    SensorStatus, Shared, Status,
};
