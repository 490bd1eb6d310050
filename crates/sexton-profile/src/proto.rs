//! Messages of other profilers, with the fields that are written here.
//!
//! Declared from the public `.proto` files rather than taken from a crate: `opentelemetry-proto`
//! brings the API and the SDK of OpenTelemetry with it, for some thirty messages.

pub mod otlp;
pub mod pprof;
