//! Moments of a recording and the microseconds that the interface speaks of.

use sexton_model::moment::Moment;

/// What the interface's times count from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Of the epoch's clock, ahead of the recording's; `None` when it was never noted. Whole
    /// microseconds, so that the edge of a column is the same moment there and back.
    offset_ns: Option<i128>,
}

/// A clock that is set by less keeps its offset: what was shown keeps its place.
const SLEW_NS: i128 = 500_000_000;

impl Clock {
    /// By the last note, unless one that is nearly the same is in use already.
    #[must_use]
    pub(crate) fn noted(self, noted: &[(Moment, u64)]) -> Self {
        let Some((at, wall_ns)) = noted.last() else {
            return self;
        };
        let offset_ns = (i128::from(*wall_ns) - i128::from(at.as_ns())).div_euclid(1000) * 1000;
        match self.offset_ns {
            Some(known) if (known - offset_ns).abs() < SLEW_NS => self,
            _ => Self {
                offset_ns: Some(offset_ns),
            },
        }
    }

    /// Whether it is the time of day.
    pub(crate) fn is_wall(self) -> bool {
        self.offset_ns.is_some()
    }

    /// Microseconds of the interface.
    pub(crate) fn us(self, at_ns: u64) -> u64 {
        let ns = i128::from(at_ns) + self.offset_ns.unwrap_or(0);
        u64::try_from(ns.max(0) / 1000).unwrap_or(u64::MAX)
    }

    /// The moment, in nanoseconds; the earliest one for times before it.
    pub(crate) fn ns(self, at_us: u64) -> u64 {
        let ns = i128::from(at_us) * 1000 - self.offset_ns.unwrap_or(0);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let at = Moment::from_ns(5_000_000_000);
        let clock = Clock::default().noted(&[(at, 1_700_000_000_000_000_000)]);
        let us = clock.us(5_000_001_000);
        assert_eq!(us, 1_700_000_000_000_001);
        assert_eq!(clock.ns(us), 5_000_001_000);
        assert_eq!(clock.ns(0), 0);
        let slewed = clock.noted(&[(at, 1_700_000_000_000_500_000)]);
        assert_eq!(slewed, clock);
        assert_ne!(clock.noted(&[(at, 1_800_000_000_000_000_000)]), clock);
        assert_eq!(Clock::default().us(7_000), 7);
        let odd = Clock::default().noted(&[(at, 1_700_000_000_123_456_789)]);
        assert_eq!(odd.ns(odd.us(9_000_000_000)), 9_000_000_000);
    }
}
