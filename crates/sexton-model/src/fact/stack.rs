//! Facts about what samples of stacks show: who had a core, and what the kernel did for it.

use super::metric::Metric;
use crate::old;
use crate::payload;
use crate::payload::Fields;

payload! {
    /// Samples that had the same stack.
    pub struct StackShare {
        /// how many
        pub samples: u64,
        /// the functions, outermost first
        pub frames: Vec<String>,
    }

    /// What a process had of one core.
    pub struct CoreShare {
        /// the core
        pub cpu: u32,
        /// part of that core's time that it had in the kernel
        pub kernel_ratio: f64,
    }

    /// A process had much of a core's time in the kernel, in the interval that ends now. The
    /// subject is the process. Only the few that had most of it are recorded.
    @from_old(from_old)
    pub struct ProcessOnCore {
        /// its name
        pub comm: Option<String>,
        /// the core where most of its kernel samples were taken
        pub cpu: Option<u32>,
        /// its cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// its samples on all cores
        pub samples: Option<u64>,
        /// of these, samples in the kernel
        pub kernel_samples: Option<u64>,
        /// the length of the interval
        pub interval_ns: Option<u64>,
        /// part of that core's time that it had
        pub core_ratio: Option<f64>,
        /// part of that core's time that it had in the kernel
        pub kernel_ratio: Option<f64>,
        /// all cores of which it had a tenth or more in the kernel
        pub cores: Vec<CoreShare>,
        /// the kernel stack that was seen most, outermost first
        pub hot_stack: Vec<String>,
        /// its part of the kernel samples
        pub hot_share: Option<f64>,
        /// the kernel stacks that were seen most, on all cores, with how often each
        pub stacks: Vec<StackShare>,
        /// statistics of memory cgroups that it was seen to have open, as paths in the hierarchy
        pub statistics: Vec<String>,
        /// samples of all cores that were lost in this interval
        pub n_lost: Option<u64>,
        /// whether it is the process that records this, which has an event for each core it was on
        pub own: Option<bool>,
    }
}

payload! {
    /// What processes of one name in one cgroup had of all cores, in the interval that ends
    /// now. The subject is the process if it was one, else the name. Only the few that had
    /// most are recorded.
    pub struct CpuUse {
        /// their name
        pub comm: String,
        /// their cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// how many processes were sampled
        pub n_processes: u64,
        /// the core time they had, in cores: 2 is all of two cores
        pub cores: f64,
        /// of this, in the kernel
        pub kernel_cores: f64,
        /// the length of the interval
        pub interval_ns: u64,
        /// whether it is the process that records this
        pub own: Option<bool>,
    }
}

fn from_old(fields: &Fields) -> Fields {
    old::lists(fields, &[("hot_stack", ";")])
}

facts! {
    /// a process had much of a core's time in the kernel: how much, and in which functions
    event PROCESS_ON_CORE = "process_on_core" of ProcessOnCore;
    /// who had the cores: processes of one name in one cgroup, and how much they had
    event CPU_USE = "cpu_use" of CpuUse;
    /// samples of stacks that were taken since the sensor began, those of idle cores included
    counter STACK_SAMPLES = "stack_samples" in Count,
        metric: Metric::counter("sexton_stack_samples_total");
    /// stack samples that were dropped, or whose stack was, since the sensor began (buffer full)
    counter STACK_SAMPLES_LOST = "stack_samples_lost" in Count,
        metric: Metric::counter("sexton_stack_samples_lost_total");
}
