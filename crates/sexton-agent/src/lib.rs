//! The loop: runs sensors, each on its own beat and within its deadline.
//!
//! Every sensor has a thread of its own. A stuck one costs its own records and a gap
//! that says so, never those of the others; one that panics is benched.

mod clock;
mod pool;
mod recorder;

pub use clock::ClockWatch;
pub use pool::{Member, SensorPool};
pub use recorder::{Progress, RecordError, Recorder};
