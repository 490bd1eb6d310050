//! Turns the kernel's tick counter into seconds.

/// Ticks per second that kernels are built with.
const RATES: [u64; 6] = [100, 250, 300, 1000, 1024, 1200];

/// Seconds by which the two clocks may differ: the tick counter starts a little
/// before the monotonic clock does.
const TOLERANCE_SECONDS: u64 = 5;

/// The tick rate of the running kernel, told by where its counter stands.
///
/// The counter starts 300 seconds before it would overflow 32 bits
/// (`INITIAL_JIFFIES`), so at the right rate the ticks since then make the uptime.
pub(super) fn ticks_per_second(jiffies: u64, monotonic_ns: u64) -> Option<u64> {
    let uptime = monotonic_ns / 1_000_000_000;
    RATES.into_iter().find(|rate| {
        let start = u64::from(0u32.wrapping_sub(300 * *rate as u32));
        jiffies
            .checked_sub(start)
            .is_some_and(|ticks| (ticks / rate).abs_diff(uptime) <= TOLERANCE_SECONDS)
    })
}

/// Seconds from `then` to `now`, both in ticks.
pub(super) fn seconds_between(then: u64, now: u64, rate: u64) -> Option<u64> {
    Some(now.checked_sub(then)? / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found_from_the_uptime() {
        for rate in RATES {
            for uptime in [600, 86_400, 90 * 86_400] {
                let start = u64::from(0u32.wrapping_sub(300 * rate as u32));
                let found = ticks_per_second(start + uptime * rate, uptime * 1_000_000_000);
                assert_eq!(found, Some(rate), "at {uptime} s");
            }
        }
        assert_eq!(ticks_per_second(7, 1_000_000_000_000), None);
    }
}
