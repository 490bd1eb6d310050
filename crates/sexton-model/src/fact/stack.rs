//! Facts about what samples of stacks show: who had a core, and what the kernel did for it.

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
        /// the kernel stack that was seen most, outermost first
        pub hot_stack: Vec<String>,
        /// its part of the kernel samples
        pub hot_share: Option<f64>,
        /// the kernel stacks that were seen most, on all cores, with how often each
        pub stacks: Vec<StackShare>,
        /// samples of all cores that were lost in this interval
        pub n_lost: Option<u64>,
        /// whether it is the process that records this, which has an event for each core it was on
        pub own: Option<bool>,
    }
}

fn from_old(fields: &Fields) -> Fields {
    old::lists(fields, &[("hot_stack", ";")])
}

facts! {
    /// a process had much of a core's time in the kernel: how much, and in which functions
    event PROCESS_ON_CORE = "process_on_core" of ProcessOnCore;
    /// samples of stacks that were taken since the sensor began, those of idle cores included
    counter STACK_SAMPLES = "stack_samples" in Count;
    /// samples of stacks that found no room, or whose stack did not, since the sensor began
    counter STACK_SAMPLES_LOST = "stack_samples_lost" in Count;
}
