//! What a node tells others: metrics from the facts' definitions, and the alert rules and
//! dashboards that read them.
//!
//! [`push`] sends metrics, findings and profiles from the ring to receivers.
//!
//! Metrics are kept as records pass ([`Metrics::take`]); a scrape reads no recording. Rules and
//! dashboards are printed from the same definitions by `cargo xtask docs`.

pub mod dashboards;
mod exposition;
mod family;
mod own;
mod points;
pub mod push;
mod room;
pub mod rules;
mod state;

pub use exposition::Format;
pub use own::{Finding, FleetReports, Forecast, Own, Sensor};
pub use points::{Point, Points};
pub use state::{MAX_SERIES, Metrics};
