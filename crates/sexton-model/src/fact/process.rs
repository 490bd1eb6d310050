//! Facts about the processes of the node: how many there are, and which cannot go on.

use super::metric::Metric;
use crate::payload;

payload! {
    /// A parent has children that have exited and that it has not reaped. The subject is
    /// the parent.
    pub struct DefunctChildren {
        /// the parent
        pub pid: u32,
        /// its name
        pub comm: Option<String>,
        /// its children that are defunct now
        pub n: u64,
        /// those of them that were defunct in an earlier scan too, seconds before
        pub n_lasting: u64,
        /// when a scan first found one of them, in nanoseconds since boot
        pub oldest_ns: u64,
        /// the cgroup of the parent
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// the highest PID of the node, `kernel.pid_max`
        pub pid_max: Option<u64>,
        /// the nearest cgroup of the parent that has a limit of tasks
        pub limited_cgroup: Option<String>,
        /// tasks in that cgroup, `pids.current`
        pub cgroup_tasks: Option<u64>,
        /// that limit, `pids.max`
        pub cgroup_tasks_max: Option<u64>,
    }

    /// Tasks that have been in uninterruptible sleep without a break, waiting in the same
    /// function of the kernel. The subject is that function.
    pub struct BlockedTasks {
        /// how many; 0 when they go on
        pub n: u64,
        /// those of them that are threads of the kernel
        pub n_of_kernel: u64,
        /// how long the first of them has been seen to sleep
        pub longest_ns: u64,
        /// when that was first seen, in nanoseconds since boot
        pub since_ns: u64,
        /// the kernel functions that it is in, innermost first
        pub stack: Vec<String>,
        /// it, and others of them
        pub tasks: Vec<BlockedTask>,
    }

    /// One of them.
    pub struct BlockedTask {
        /// its number
        pub tid: u32,
        /// its name
        pub comm: Option<String>,
        /// its cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
    }
}

facts! {
    /// processes and threads that exist, defunct ones included
    gauge TASKS_TOTAL = "tasks_total" in Count,
        metric: Metric::gauge("sexton_tasks");
    /// processes that exist, defunct ones included, in a scan of all
    gauge PROCESSES_TOTAL = "processes_total" in Count,
        metric: Metric::gauge("sexton_processes");
    /// processes that have exited and whose parent has not reaped them, in a scan of all
    gauge PROCESSES_DEFUNCT = "processes_defunct" in Count,
        metric: Metric::gauge("sexton_processes_defunct");
    /// processes whose main thread is in uninterruptible sleep, in a scan of all
    gauge PROCESSES_UNINTERRUPTIBLE = "processes_uninterruptible" in Count,
        metric: Metric::gauge("sexton_processes_uninterruptible");
    /// a parent has children that have exited and that it has not reaped; again when there are
    /// fewer
    event DEFUNCT_CHILDREN = "defunct_children" of DefunctChildren;
    /// tasks that wait for disk I/O, by the kernel's own count
    gauge TASKS_WAITING_FOR_IO = "tasks_waiting_for_io" in Count;
    /// tasks have been in uninterruptible sleep for 5 s or longer; again when they are more or
    /// fewer, and when they have slept twice as long
    event TASKS_BLOCKED = "tasks_blocked" of BlockedTasks;
}
