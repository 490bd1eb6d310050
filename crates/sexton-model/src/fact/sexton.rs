//! Facts about sexton itself.

use super::metric::{Metric, SENSORS};
use crate::payload;

payload! {
    /// The wall clock was set.
    pub struct ClockJump {
        /// by how much, against the clock of the recording
        pub moved_ns: Option<i64>,
        /// what it said then
        pub wall_ns: Option<u64>,
    }

    /// A sensor sees something by lesser means, because the best does not work on this
    /// kernel. The subject is the sensor.
    pub struct StepDown {
        /// what is seen: stacks, dying cgroups
        pub what: String,
        /// by which means, as it is shown after `by`: perf events, counts
        pub by: String,
    }

    /// What the sexton that recorded could look at.
    pub struct SensorList {
        /// the sensors that it had, whether or not they were at work
        pub sensors: Vec<String>,
    }
}

facts! {
    /// how long one poll of a sensor took
    gauge SEXTON_POLL_NS = "sexton_poll_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_poll_seconds").by(SENSORS, 64);
    /// the part of one core that the agent used, averaged over a minute
    gauge SEXTON_CPU_RATIO = "sexton_cpu_ratio" in Ratio,
        metric: Metric::gauge("sexton_agent_cpu_ratio");
    /// resident memory of the agent
    gauge SEXTON_MEMORY_BYTES = "sexton_memory_bytes" in Bytes,
        metric: Metric::gauge("sexton_agent_memory_bytes");
    /// the wall clock, in nanoseconds since 1970, at this moment of the clock of the recording
    gauge SEXTON_WALL_CLOCK_NS = "sexton_wall_clock_ns" in Nanoseconds;
    /// the wall clock was set: it moved against the clock of the recording
    event SEXTON_CLOCK_JUMP = "sexton_clock_jump" of ClockJump;
    /// a sensor sees something by lesser means than the best: what, and by which
    event SEXTON_STEP_DOWN = "sexton_step_down" of StepDown;
    /// the sensors that the recording sexton had; told at the start and every 10 minutes
    event SEXTON_SENSORS = "sexton_sensors" of SensorList;
}
