//! Limits of tasks of cgroups that their owners set as tight as they are meant to be used.

use sexton_model::fact::Measure;
use sexton_model::moment::Moment;

use crate::rule::Threshold;

/// How the sensor's names of such limits begin.
pub(crate) const OF_TASKS: &str = "pids.max";

pub(crate) static LEAST_TASKS: Threshold = Threshold {
    rule: "LIM001",
    name: "least_tasks",
    default: 64.0,
    range: (1.0, 1e6),
    unit: Measure::Count,
    why: "a cgroup's limit of fewer tasks is set to what its service needs (TasksMax=1 keeps it \
          from starting anything else), so it counts only once the kernel has refused a task; \
          systemd's own default is 15 % of kernel.pid_max: 4,915 of 32,768",
};

/// Whether a limit is tight, and the kernel has refused nothing because of it: being used up is
/// what it is there for.
pub(crate) fn is_as_meant(name: &str, most: f64, refused: f64, least: f64) -> bool {
    name.starts_with(OF_TASKS) && most < least && refused <= 0.0
}

/// The highest of samples, and since when they are near the limit.
pub(crate) struct Height {
    pub(crate) worst: (Moment, f64),
    pub(crate) is_near_now: bool,
    pub(crate) first_near: Option<Moment>,
}

impl Height {
    /// Samples are in the order of time. One that is near now is judged from when it last came
    /// near: what was freed before does not count.
    pub(crate) fn of(samples: &[(Moment, f64)], near: f64) -> Option<Self> {
        let is_near = |sample: &&(Moment, f64)| sample.1 >= near;
        let n_near = samples.iter().rev().take_while(is_near).count();
        let judged = match n_near {
            0 => samples,
            n => &samples[samples.len() - n..],
        };
        Some(Self {
            worst: *judged.iter().max_by(|a, b| a.1.total_cmp(&b.1))?,
            is_near_now: n_near > 0,
            first_near: judged.iter().find(is_near).map(|(at, _)| *at),
        })
    }
}
