//! What a node tells Kubernetes: conditions of the node, one for each family of findings, and
//! events of the node and of pods.
//!
//! - `verdict`: what the agent hands over;
//! - `conditions`: verdicts to conditions, held against flapping; pure;
//! - `events`: turns of findings to events and their series; pure;
//! - `access`, `client`: how the API server is reached and asked;
//! - `teller`: the thread that tells it, at its own pace, whatever the API server does;
//! - `cleanup`: removes what was told.

mod access;
mod cleanup;
mod client;
pub mod conditions;
mod error;
mod events;
mod pods;
mod teller;
mod text;
mod verdict;

pub use access::Access;
pub use cleanup::{Nodes, clean_up};
pub use error::KubernetesError;
pub use teller::{Log, Pace, Settings, Stats, Teller};
pub use verdict::{BootProof, NotAssessed, Pod, Problem, Turn, Verdict};
