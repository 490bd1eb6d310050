//! Facts about disks: how busy they are, how long requests take, and which processes use them.
//! The subject is the block device, or the process.

use super::show::{Group, Series, Show};
use crate::payload;

payload! {
    /// A block device was seen.
    pub struct DiskSeen {
        /// whether it turns, as the kernel knows it
        pub rotational: Option<bool>,
        /// the devices that it is made of (device mapper, RAID)
        pub made_of: Vec<String>,
    }

    /// A process that read or wrote, or waited, while a disk was busy. The subject is the
    /// process.
    pub struct DiskUse {
        /// the process
        pub pid: u32,
        /// its name
        pub comm: Option<String>,
        /// bytes that it had read from block devices since the look before
        pub read_bytes: u64,
        /// bytes that it wrote to files that are on block devices since the look before, whether
        /// or not they have arrived there
        pub written_bytes: u64,
        /// the time since the look before
        pub within_ns: u64,
        /// whether it, or a thread of it, was in uninterruptible sleep
        pub waits: bool,
        /// the disks that its open files are on, as far as that can be told
        pub disks: Vec<String>,
        /// its cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
    }
}

facts! {
    /// a block device was first seen
    event DISK_SEEN = "disk_seen" of DiskSeen;
    /// part of the interval in which a block device had at least one request to serve
    gauge DISK_BUSY_RATIO = "disk_busy_ratio" in Ratio,
        shown: Show::Series(
            Series::line("disk.busy", Group::Pressure, "busiest disk", "disks").as_heat().of_any()
        );
    /// requests that a block device had at once, on average over the interval
    gauge DISK_QUEUE = "disk_queue" in Count;
    /// requests that a block device completed in the interval
    gauge DISK_COMPLETED = "disk_completed" in Count;
    /// requests that a block device has and has not completed
    gauge DISK_IN_FLIGHT = "disk_in_flight" in Count;
    /// mean time that requests which were completed in the interval took, with their time in the
    /// queue
    gauge DISK_LATENCY_NS = "disk_latency_ns" in Nanoseconds,
        shown: Show::Series(
            Series::line("disk.latency", Group::Pressure, "time of a disk request", "disks").of_any()
        );
    /// bytes read from a block device since boot
    counter DISK_READ_BYTES = "disk_read_bytes" in Bytes;
    /// bytes written to a block device since boot
    counter DISK_WRITTEN_BYTES = "disk_written_bytes" in Bytes;
    /// processes outside the kernel that were in uninterruptible sleep, in one look at all while
    /// a disk was busy
    gauge DISK_WAITERS = "disk_waiters" in Count;
    /// a process read, wrote or waited while a disk was busy
    event DISK_USER = "disk_user" of DiskUse;
}
