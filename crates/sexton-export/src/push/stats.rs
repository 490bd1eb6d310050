//! How a channel does.

/// Figures of one channel since the agent started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Its name: `otlp-metrics`, `pyroscope`.
    pub channel: String,
    /// Requests that were made.
    pub n_requests: u64,
    /// Windows that the receiver took, at least in part.
    pub n_sent: u64,
    /// Bytes of requests that it took.
    pub sent_bytes: u64,
    /// Requests that it refused for good, and what it said it left out of others.
    pub n_refused: u64,
    /// Windows that were dropped: older than it takes, or gone from the ring.
    pub n_dropped: u64,
    /// Stacks that were cut to the depth that it takes.
    pub n_cut: u64,
    /// Samples whose owner was folded into `other`.
    pub n_folded: u64,
    /// From the end of what was sent to now.
    pub lag_seconds: f64,
    /// What keeps it from sending, while something does.
    pub trouble: Option<String>,
}
