//! Facts about limits of the kernel: how much of each is used. The subject names the limit:
//! the setting, or `pids.max` and the cgroup that has it.

use super::metric::{LIMITS, Metric};

facts! {
    /// part of a limit that is used
    gauge LIMIT_USED_RATIO = "limit_used_ratio" in Ratio,
        metric: Metric::gauge("sexton_limit_used_ratio").by(LIMITS, 128);
    /// how much of a limit is used
    gauge LIMIT_USED = "limit_used" in Count,
        metric: Metric::gauge("sexton_limit_used").by(LIMITS, 128);
    /// the limit
    gauge LIMIT_MOST = "limit_most" in Count,
        metric: Metric::gauge("sexton_limit_max").by(LIMITS, 128);
    /// how often the kernel refused or dropped something because the limit was reached
    counter LIMIT_HITS = "limit_hits" in Count,
        metric: Metric::counter("sexton_limit_hits_total").by(LIMITS, 128);
}
