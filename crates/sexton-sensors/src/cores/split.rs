//! What became of a core's time between two looks.

use std::time::Duration;

use super::stat::{Mode, N_MODES, Ticks};

/// `USER_HZ` of Linux on every architecture we run on. Part of the kernel's interface, and
/// so the same for a capture from another machine.
const TICK: Duration = Duration::from_millis(10);

/// A counter that steps back by so many ticks has not begun anew.
///
/// Each counter is cut to whole ticks for itself, so a difference of two (user less guest)
/// flutters by one; reads of a counter that another core is just writing add another.
const FLUTTER_TICKS: u64 = 2;

/// For so long a core that was booked nothing is not judged: the next tick may be late.
///
/// Chosen: five ticks. At 100 ms it holds nothing back; at 10 ms it keeps the granularity
/// of the counters from being told as a core that stands still.
const PATIENCE: Duration = TICK.saturating_mul(5);

const IDLE: usize = Mode::Idle as usize;
const IOWAIT: usize = Mode::Iowait as usize;

/// Parts of an interval, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Split {
    /// By mode. They add up to 1, or to 0 when the kernel booked nothing at all.
    parts: [f64; N_MODES],
    /// Of the wall's time, what was booked to no mode.
    pub(super) unaccounted: f64,
}

impl Split {
    /// The part of one mode.
    pub(super) fn part(&self, mode: Mode) -> f64 {
        self.parts[mode as usize]
    }

    /// Whether no part differs by more than this.
    pub(super) fn is_like(&self, other: &Self, by: f64) -> bool {
        let parts = self.parts.iter().zip(&other.parts);
        parts
            .chain([(&self.unaccounted, &other.unaccounted)])
            .all(|(one, other)| (one - other).abs() <= by)
    }

    /// All that is not idle.
    pub(super) fn busy(&self) -> f64 {
        let idle = self.parts[IDLE] + self.parts[IOWAIT];
        (self.parts.iter().sum::<f64>() - idle).clamp(0.0, 1.0)
    }

    /// What the kernel used for itself.
    pub(super) fn system_side(&self) -> f64 {
        let side = [Mode::System, Mode::Irq, Mode::Softirq];
        side.map(|mode| self.part(mode))
            .iter()
            .sum::<f64>()
            .min(1.0)
    }
}

/// What the time since the last look comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// A split; the next interval begins now.
    Told(Split),
    /// Too little time has passed to say. The interval goes on.
    TooSoon,
    /// A counter went backwards: the next interval begins now, this one is not known.
    BegunAnew,
}

/// Splits `wall`, the time between two looks. `before` becomes where the next starts.
pub(super) fn split(before: &mut Ticks, now: &Ticks, wall: Duration) -> Outcome {
    let Some(booked) = booked(before, now) else {
        *before = *now;
        return Outcome::BegunAnew;
    };
    let sum: f64 = booked.iter().map(|ticks| *ticks as f64).sum();
    if sum == 0.0 && wall < PATIENCE {
        return Outcome::TooSoon;
    }
    keep_place(before, now);
    // A core that stands still was booked nothing of the wall's time.
    let whole = if sum == 0.0 { 1.0 } else { sum };
    let wall_ticks = wall.as_secs_f64() / TICK.as_secs_f64();
    let accounted = if sum >= wall_ticks {
        1.0
    } else {
        sum / wall_ticks
    };
    Outcome::Told(Split {
        parts: booked.map(|ticks| ticks as f64 / whole),
        unaccounted: 1.0 - accounted,
    })
}

/// What was booked between; `None` when a counter has begun anew.
fn booked(before: &Ticks, now: &Ticks) -> Option<Ticks> {
    let mut booked = [0; N_MODES];
    for (mode, booked) in booked.iter_mut().enumerate() {
        let fell = before[mode].saturating_sub(now[mode]);
        if fell > FLUTTER_TICKS && mode != IDLE && mode != IOWAIT {
            return None;
        }
        *booked = now[mode].saturating_sub(before[mode]);
    }
    // The kernel decides only when it is asked whether the idle time of a core that is idle
    // now, all of it, is idle or iowait. One then falls by what the other grows, so the two
    // are counted as one, and the fallen one gets nothing.
    let both = |ticks: &Ticks| ticks[IDLE].saturating_add(ticks[IOWAIT]);
    if both(before).saturating_sub(both(now)) > FLUTTER_TICKS {
        return None;
    }
    let grown = both(now).saturating_sub(both(before));
    booked[IOWAIT] = booked[IOWAIT].min(grown);
    booked[IDLE] = grown - booked[IOWAIT];
    Some(booked)
}

/// A flutter is not counted again when the counter recovers, so its height is kept.
fn keep_place(before: &mut Ticks, now: &Ticks) {
    for (mode, before) in before.iter_mut().enumerate() {
        let trades = mode == IDLE || mode == IOWAIT;
        *before = if trades {
            now[mode]
        } else {
            now[mode].max(*before)
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEFORE: Ticks = [1000; N_MODES];
    const SHOWN: [Mode; 4] = [Mode::User, Mode::System, Mode::Idle, Mode::Iowait];

    /// What comes of user, system, idle and iowait ticks added to `BEFORE`: their parts in
    /// percent, and what is unaccounted.
    #[track_caller]
    fn check(wall_ms: u64, ticks: [i64; 4], expected: Result<[u32; 5], Outcome>) {
        let mut now = BEFORE;
        for (mode, ticks) in SHOWN.into_iter().zip(ticks) {
            now[mode as usize] = now[mode as usize].saturating_add_signed(ticks);
        }
        let percent = |part: f64| (part * 100.0).round() as u32;
        let outcome = match split(&mut BEFORE.clone(), &now, Duration::from_millis(wall_ms)) {
            Outcome::Told(split) => {
                let [user, system, idle, iowait] = SHOWN.map(|mode| percent(split.part(mode)));
                Ok([user, system, idle, iowait, percent(split.unaccounted)])
            }
            other => Err(other),
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn time_is_split_by_what_was_booked() {
        check(100, [3, 1, 5, 1], Ok([30, 10, 50, 10, 0]));
        check(100, [2, 2, 7, 0], Ok([18, 18, 64, 0, 0]));
        check(1000, [0, 100, 0, 0], Ok([0, 100, 0, 0, 0]));
    }

    #[test]
    fn what_is_booked_to_nothing_is_told() {
        check(100, [0, 1, 0, 0], Ok([0, 100, 0, 0, 90]));
        check(100, [0, 0, 0, 0], Ok([0, 0, 0, 0, 100]));
    }

    #[test]
    fn an_interval_below_the_tick_is_not_a_standstill() {
        check(10, [0, 0, 0, 0], Err(Outcome::TooSoon));
        check(10, [1, 0, 0, 0], Ok([100, 0, 0, 0, 0]));
        check(0, [1, 0, 0, 0], Ok([100, 0, 0, 0, 0]));
    }

    #[test]
    fn idle_and_iowait_trade_places() {
        check(100, [0, 0, 60, -50], Ok([0, 0, 100, 0, 0]));
        check(100, [5, 0, -45, 50], Ok([50, 0, 0, 50, 0]));
    }

    #[test]
    fn a_counter_that_begins_anew_is_not_a_spike() {
        check(100, [-900, 0, 10, 0], Err(Outcome::BegunAnew));
        check(100, [0, 1, -900, 0], Err(Outcome::BegunAnew));
        check(100, [0, 1, -900, -900], Err(Outcome::BegunAnew));
    }

    #[test]
    fn a_flutter_is_counted_once() {
        let mut before = BEFORE;
        let mut total = 0.0;
        for user in [999, 1001, 1000, 1001, 1000, 1002] {
            let mut now = before;
            now[Mode::User as usize] = user;
            now[IDLE] += 1000;
            let Outcome::Told(split) = split(&mut before, &now, Duration::from_secs(10)) else {
                panic!("a flutter is no new start");
            };
            total += split.part(Mode::User) * 1000.0;
        }
        assert_eq!(total.round(), 2.0, "ticks of user time");
    }

    proptest! {
        #[test]
        fn parts_are_parts(
            mut before in proptest::array::uniform9(prop_oneof![any::<u64>(), 0..200_u64]),
            now in proptest::array::uniform9(prop_oneof![any::<u64>(), 0..200_u64]),
            wall_ns: u64,
        ) {
            if let Outcome::Told(split) = split(&mut before, &now, Duration::from_nanos(wall_ns)) {
                let all: f64 = split.parts.iter().sum();
                prop_assert!(all == 0.0 || (all - 1.0).abs() < 1e-9, "{all}");
                prop_assert!(split.parts.iter().all(|part| (0.0..=1.0).contains(part)));
                let others = [split.unaccounted, split.busy(), split.system_side()];
                prop_assert!(others.iter().all(|part| (0.0..=1.0).contains(part)));
            }
        }
    }
}
