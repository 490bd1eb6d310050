//! Percentiles of delays that a BPF program counts in powers of two.

/// What has been read of one set of counts.
#[derive(Debug, Clone)]
pub(crate) struct Delays<const N: usize> {
    read: [u64; N],
}

impl<const N: usize> Delays<N> {
    /// Nothing has been counted yet.
    pub(crate) fn new() -> Self {
        Self { read: [0; N] }
    }

    /// The delays since the last time.
    pub(crate) fn advance(&mut self, counted: [u64; N]) -> Interval<N> {
        let mut n = counted;
        for (new, old) in n.iter_mut().zip(self.read) {
            *new = new.wrapping_sub(old);
        }
        self.read = counted;
        Interval { n }
    }
}

/// The delays of one interval: bucket `i` counts those of `2^i` ns up to twice that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interval<const N: usize> {
    n: [u64; N],
}

impl<const N: usize> Interval<N> {
    /// The end of the bucket that holds the delay which `hundredths` of 100 do not exceed;
    /// `None` when there was none.
    pub(crate) fn percentile_ns(&self, hundredths: u64) -> Option<u64> {
        let total: u64 = self.n.iter().sum();
        let wanted = (total * hundredths).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.n.iter().position(|n| {
            seen += n;
            seen >= wanted
        })?;
        Some(2u64 << bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(counts: &[(usize, u64)], hundredths: u64, expected: Option<u64>) {
        let mut n = [0; 37];
        for (bucket, count) in counts {
            n[*bucket] = *count;
        }
        let interval = Delays::new().advance(n);
        assert_eq!(interval.percentile_ns(hundredths), expected);
    }

    #[test]
    fn percentiles() {
        check(&[], 50, None);
        check(&[(0, 1)], 50, Some(2));
        check(&[(10, 99), (30, 1)], 99, Some(2048));
        check(&[(10, 98), (30, 2)], 99, Some(2 << 30));
        check(&[(10, 98), (30, 2)], 100, Some(2 << 30));
        check(&[(36, 7)], 1, Some(2 << 36));
    }

    #[test]
    fn an_interval_is_what_came_since() {
        let mut delays = Delays::new();
        assert_eq!(delays.advance([0, 0]).percentile_ns(100), None);
        assert_eq!(delays.advance([3, 0]).percentile_ns(100), Some(2));
        assert_eq!(delays.advance([3, 5]).percentile_ns(1), Some(4));
        assert_eq!(delays.advance([3, 5]).percentile_ns(100), None);
    }
}
