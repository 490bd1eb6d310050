//! Facts about sexton itself.

use crate::payload;

payload! {
    /// The wall clock was set.
    pub struct ClockJump {
        /// by how much, against the clock of the recording
        pub moved_ns: Option<i64>,
        /// what it said then
        pub wall_ns: Option<u64>,
    }
}

facts! {
    /// how long one poll of a sensor took
    gauge SEXTON_POLL_NS = "sexton_poll_ns" in Nanoseconds;
    /// the wall clock, in nanoseconds since 1970, at this moment of the clock of the recording
    gauge SEXTON_WALL_CLOCK_NS = "sexton_wall_clock_ns" in Nanoseconds;
    /// the wall clock was set: it moved against the clock of the recording
    event SEXTON_CLOCK_JUMP = "sexton_clock_jump" of ClockJump;
}
