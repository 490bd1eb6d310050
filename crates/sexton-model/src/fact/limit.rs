//! Facts about limits of the kernel: how much of each is used. The subject names the limit:
//! the setting, or `pids.max` and the cgroup that has it.

facts! {
    /// part of a limit that is used
    gauge LIMIT_USED_RATIO = "limit_used_ratio" in Ratio;
    /// how much of a limit is used
    gauge LIMIT_USED = "limit_used" in Count;
    /// the limit
    gauge LIMIT_MOST = "limit_most" in Count;
    /// how often the kernel refused or dropped something because the limit was reached
    counter LIMIT_HITS = "limit_hits" in Count;
}
