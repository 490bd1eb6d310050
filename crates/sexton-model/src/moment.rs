//! The one clock of a recording.

use std::time::Duration;

/// A moment: nanoseconds since boot, time asleep included (`CLOCK_BOOTTIME`). It never
/// jumps; what the wall clock said meanwhile is recorded beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// So many nanoseconds after boot.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds after boot.
    pub fn as_ns(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment and so much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}
