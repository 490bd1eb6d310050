//! Facts about memory: how much is left, how much is reclaimed only to be read again, and whose.
//! The subject is the node, a memory cgroup or a process.

use super::metric::Metric;
use super::show::{Group, Series, Show};
use crate::payload;

payload! {
    /// A memory cgroup that reached its limit or waited for memory, or one of the largest, in an
    /// interval in which the node read again what it had reclaimed, or waited for memory. The
    /// subject is the cgroup.
    pub struct MemoryCgroup {
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// bytes that it has
        pub used_bytes: u64,
        /// bytes that it may have; none where it has no limit
        pub limit_bytes: Option<u64>,
        /// times it reached its limit in the interval
        pub limit_hits: u64,
        /// time in which at least one task of it waited for memory; cgroup v1 does not tell
        pub stalled_ns: Option<u64>,
        /// the length of the interval
        pub within_ns: u64,
    }

    /// A process that had pages read back in, or one of the largest, in such an interval. The
    /// subject is the process.
    pub struct MemoryTask {
        /// its name
        pub comm: Option<String>,
        /// its memory cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// page faults that had to wait for a disk (major faults) in the interval
        pub major_faults: u64,
        /// bytes of it that are in memory
        pub resident_bytes: u64,
        /// the length of the interval
        pub within_ns: u64,
    }
}

facts! {
    /// bytes that can be had without swapping, as the kernel estimates it (MemAvailable)
    gauge MEMORY_AVAILABLE_BYTES = "memory_available_bytes" in Bytes,
        metric: Metric::gauge("sexton_memory_available_bytes");
    /// bytes of memory that the kernel has in all (MemTotal)
    gauge MEMORY_TOTAL_BYTES = "memory_total_bytes" in Bytes;
    /// bytes that were reclaimed and had to be read again (workingset_refault)
    counter MEMORY_REFAULT_BYTES = "memory_refault_bytes" in Bytes,
        shown: Show::Series(
            Series::line("memory.refaults", Group::Pressure, "reclaimed and read again", "memory")
        ),
        metric: Metric::counter("sexton_memory_refault_bytes_total");
    /// bytes read from block devices, swap among them (pgpgin)
    counter MEMORY_READ_IN_BYTES = "memory_read_in_bytes" in Bytes;
    /// bytes read back from swap (pswpin)
    counter MEMORY_SWAPPED_IN_BYTES = "memory_swapped_in_bytes" in Bytes,
        metric: Metric::counter("sexton_memory_swapped_in_bytes_total");
    /// bytes written to swap (pswpout)
    counter MEMORY_SWAPPED_OUT_BYTES = "memory_swapped_out_bytes" in Bytes,
        metric: Metric::counter("sexton_memory_swapped_out_bytes_total");
    /// times a task had to reclaim memory itself because the node had too little free
    /// (allocstall); reclaim for the limit of a cgroup does not count
    counter MEMORY_ALLOCATION_STALLS = "memory_allocation_stalls" in Count,
        metric: Metric::counter("sexton_memory_allocation_stalls_total");
    /// page faults that had to wait for a disk (pgmajfault)
    counter MEMORY_MAJOR_FAULTS = "memory_major_faults" in Count,
        metric: Metric::counter("sexton_memory_major_faults_total");
    /// a memory cgroup reached its limit or waited for memory, or is one of the largest
    event MEMORY_CGROUP = "memory_cgroup" of MemoryCgroup;
    /// a process had pages read back in, or is one of the largest
    event MEMORY_TASK = "memory_task" of MemoryTask;
}
