//! What a look at many processes costs: it has a limit, and the sensor rests after it, so that looks
//! together take no more than 0.5 % of a core.

use std::time::{Duration, Instant};

use sexton_host::clock;

/// After a look a sensor rests at least this many times its CPU time.
const REST: u32 = 200;

/// CPU time of one look, and the time on the clock that it may take on a busy node.
const MAX_CPU: Duration = Duration::from_millis(50);
const MAX_WALL: Duration = Duration::from_millis(500);

/// A look that is under way, in this thread.
pub(crate) struct Effort {
    began: Instant,
    cpu: Duration,
}

impl Effort {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            cpu: clock::thread_cpu_time(),
        }
    }

    fn spent(&self) -> Duration {
        clock::thread_cpu_time().saturating_sub(self.cpu)
    }

    /// Whether it has taken as long as it may.
    pub(crate) fn is_over(&self) -> bool {
        self.spent() >= MAX_CPU || self.began.elapsed() >= MAX_WALL
    }

    /// Whether it has taken this part of the CPU time, however long it waited for a core.
    pub(crate) fn has_taken(&self, part: f64) -> bool {
        self.spent() >= MAX_CPU.mul_f64(part)
    }

    /// How long the sensor rests after what was done so far.
    pub(crate) fn rest(&self) -> Duration {
        self.spent().saturating_mul(REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_grows_with_the_work() {
        let effort = Effort::begin();
        assert!(!effort.is_over());
        let until = clock::thread_cpu_time() + MAX_CPU;
        while clock::thread_cpu_time() < until {
            std::hint::spin_loop();
        }
        assert!(effort.is_over() && effort.has_taken(0.5));
        assert!(effort.rest() >= MAX_CPU * REST);
    }
}
