//! Whether a pile of dying cgroups grows, stands or drains, and how fast.

use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::moment::Moment;

use crate::case::Case;
use crate::evidence::origins::Origin;
use crate::evidence::trend::Trend;
use crate::rule::Threshold;

/// Ages tell nothing of a course unless they reach back this far: a burst is as young.
const LEAST_AGE: f64 = 60.0;

/// Fewer than this have no course worth telling.
const LEAST: f64 = 10.0;

/// A pile that becomes less drains only if at that pace it is gone within this time: what a
/// deploy leaves is gone within minutes. Reclaim nibbles at any old pile: 3 in 5 s of 1,301 were
/// measured on a busy machine, and that one is still a pile tomorrow.
const GONE_WITHIN: f64 = 600.0;

/// What a pile does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Course {
    /// It grows, by the censuses of the watch.
    Grows(Trend),
    /// It grows, by the ages of those that are there.
    HasGrown(Trend),
    /// Neither.
    Stands,
    /// It becomes less.
    Drains,
}

impl Course {
    /// How fast it grows, if it does.
    pub(crate) fn trend(self) -> Option<Trend> {
        match self {
            Self::Grows(trend) | Self::HasGrown(trend) => Some(trend),
            Self::Stands | Self::Drains => None,
        }
    }
}

/// A pile is as low as it was at its lowest within this part of it: counts waver.
const WAVERS: f64 = 0.05;

/// The counts that tell of the course of now. A pile that was freed and grows again, or stands
/// for longer than a drain takes, is judged from its last turn on; one that still becomes less
/// by all counts.
fn since_the_turn(points: &[(Moment, f64)]) -> &[(Moment, f64)] {
    let by_count =
        |a: &(usize, &(Moment, f64)), b: &(usize, &(Moment, f64))| a.1.1.total_cmp(&b.1.1);
    let Some((top, _)) = points.iter().enumerate().max_by(by_count) else {
        return points;
    };
    let after = &points[top..];
    let lowest = after.iter().map(|point| point.1).fold(f64::MAX, f64::min);
    let step = LEAST.max(WAVERS * lowest);
    let turn = after.iter().position(|point| point.1 <= lowest + step);
    let tail = &after[turn.unwrap_or(0)..];
    let (Some(first), Some(last)) = (tail.first(), tail.last()) else {
        return points;
    };
    let stands = last.0.since(first.0).as_secs_f64() > GONE_WITHIN;
    // Fewer come and go with each deploy.
    let is_pile_again = last.1 > lowest + step && last.1 >= FLOOR.default;
    let grows = is_pile_again && Trend::of(tail).is_some_and(|tail| tail.least() > 0.0);
    match stands || grows {
        true => tail,
        false => points,
    }
}

/// What the pile of an origin does. The longer look back decides.
pub(crate) fn course(origin: &Origin<'_>) -> Course {
    let points = since_the_turn(&origin.points);
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let last = points.last().map_or(0.0, |point| point.1);
    if last <= 0.5 * most {
        return Course::Drains;
    }
    let watched = Trend::of(points);
    let drains = |trend: Trend| {
        let is_less = trend.per_second + 2.0 * trend.error < 0.0;
        is_less && last <= -trend.per_second * GONE_WITHIN
    };
    if watched.is_some_and(drains) {
        return Course::Drains;
    }
    let aged = by_age(origin);
    let is_longer = aged.is_some() && seconds_back(origin) > 4.0 * watched_seconds(origin);
    let grows = watched.filter(|trend| trend.least() > 0.0 && last >= 0.9 * most);
    match (grows, aged) {
        (Some(trend), None) => Course::Grows(trend),
        (Some(trend), Some(_)) if !is_longer => Course::Grows(trend),
        (_, Some(trend)) => Course::HasGrown(trend),
        (None, None) => Course::Stands,
    }
}

/// The course that ages tell: those that are older were there before. `None` when nothing
/// was added for longer than the pace until then explains: that was a burst, or is over.
fn by_age(origin: &Origin<'_>) -> Option<Trend> {
    let n = origin.dying as f64;
    let ages: Vec<f64> = origin.ages.iter().map(|age| *age as f64).collect();
    let (youngest, oldest) = (*ages.first()?, *ages.last()?);
    if oldest < LEAST_AGE || n < LEAST {
        return None;
    }
    let pace = (oldest - youngest) / n;
    let middle = (*ages.get(1)?, *ages.get(9)?);
    let is_one_burst = middle.1 - middle.0 < 0.1 * oldest;
    if youngest > (3.0 * pace).max(30.0) || is_one_burst {
        return None;
    }
    let parts = (ages.len() - 1) as f64;
    let points: Vec<(f64, f64)> = ages
        .iter()
        .enumerate()
        .map(|(i, age)| (-age, n * (1.0 - i as f64 / parts)))
        .collect();
    Trend::through(&points).filter(|trend| trend.least() > 0.0)
}

fn seconds_back(origin: &Origin<'_>) -> f64 {
    origin.ages.last().map_or(0.0, |age| *age as f64)
}

fn watched_seconds(origin: &Origin<'_>) -> f64 {
    let first = origin.points.first().map_or(origin.at, |point| point.0);
    origin.at.since(first).as_secs_f64()
}

/// A pile that grew before, and by none for the time that five of them take, has
/// stopped.
const MISSED: f64 = 5.0;

/// Creations are told up to this late.
const LATE: f64 = 2.0;

/// How fast a pile grows, if it still does: by its last counts, and by the creations since.
pub(crate) fn goes_on(case: &Case<'_>, origin: &Origin<'_>, course: Course) -> Option<Trend> {
    let trend = course.trend()?;
    let limit = MISSED / trend.per_second.max(f64::MIN_POSITIVE);
    let creations = case.creations().creations.iter();
    let own = creations.filter(|creation| creation.pattern == origin.pattern);
    let last = own.map(|creation| creation.at).max();
    let unmade = last.map(|at| case.now().since(at).as_secs_f64());
    if unmade.is_some_and(|seconds| seconds > limit + LATE) {
        return None;
    }
    let mut rises = origin
        .points
        .windows(2)
        .filter(|pair| pair[1].1 > pair[0].1);
    let idle = match course {
        Course::Grows(_) => {
            let last_rise = rises.next_back().map(|pair| pair[1].0);
            last_rise.map(|at| origin.at.since(at).as_secs_f64())
        }
        // Ages are whole seconds.
        _ => origin.ages.first().map(|age| (*age as f64 - 1.0).max(0.0)),
    };
    (idle? <= limit).then_some(trend)
}

/// Since when there are some, as far as ages tell.
pub(crate) fn since(origin: &Origin<'_>) -> Option<Moment> {
    let age = Duration::from_secs(origin.oldest_seconds?);
    let ns = u64::try_from(age.as_nanos()).ok()?;
    Some(Moment::from_ns(origin.at.as_ns().checked_sub(ns)?))
}

/// Whether dying ones of a kind pile up.
pub(crate) fn is_pile(case: &Case<'_>, origin: &Origin<'_>, course: Course) -> bool {
    let dying = origin.dying as f64;
    let per_hour = course
        .trend()
        .map_or(0.0, |trend| trend.per_second * 3600.0);
    match course {
        Course::Drains => false,
        _ if dying >= case.limit(&FLOOR) => true,
        Course::Stands => false,
        Course::Grows(_) | Course::HasGrown(_) => {
            dying >= case.limit(&GROWING_FLOOR) && per_hour >= case.limit(&LEAST_PER_HOUR)
        }
    }
}

pub(crate) static FLOOR: Threshold = Threshold {
    rule: "MCG001",
    name: "floor",
    default: 1_000.0,
    range: (1.0, 1e9),
    unit: Measure::Count,
    why: "this number of dying cgroups of one kind is a pile, growing or not; the gate that the founding \
          incident's engineers put into their pipeline",
};

pub(crate) static GROWING_FLOOR: Threshold = Threshold {
    rule: "MCG001",
    name: "growing_floor",
    default: 30.0,
    range: (1.0, 1e9),
    unit: Measure::Count,
    why: "fewer dying cgroups of one kind are ordinary even while they become more; twice what a \
          boot of systemd alone was measured to leave (16)",
};

pub(crate) static LEAST_PER_HOUR: Threshold = Threshold {
    rule: "MCG001",
    name: "least_per_hour",
    default: 60.0,
    range: (0.01, 1e9),
    unit: Measure::Count,
    why: "slower growth takes weeks to matter, and is found by its pile then; the slowest loop of \
          the founding incident made 144 an hour",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;
    use sexton_model::subject::Subject;

    fn origin(points: &[f64], ages: &[u64]) -> Course {
        let subject = Subject::node();
        let points: Vec<(Moment, f64)> = points
            .iter()
            .enumerate()
            .map(|(i, n)| (at(9 * i as u64), *n))
            .collect();
        course(&Origin {
            subject: &subject,
            at: at(27),
            pattern: String::new(),
            kind: "",
            unit: None,
            image: None,
            live: 0,
            dying: points.last().map_or(0, |point| point.1 as u64),
            leaked: 0,
            young_empty: 0,
            pages: None,
            without_pin: 0,
            oldest_seconds: None,
            ages,
            pins: &[],
            points,
        })
    }

    #[test]
    fn censuses_tell() {
        assert!(matches!(
            origin(&[10.0, 19.0, 28.0, 37.0], &[]),
            Course::Grows(_)
        ));
        assert_eq!(origin(&[100.0, 100.0, 100.0, 100.0], &[]), Course::Stands);
        assert_eq!(origin(&[400.0, 300.0, 200.0, 100.0], &[]), Course::Drains);
        assert_eq!(origin(&[0.0, 400.0, 100.0, 3.0], &[]), Course::Drains);
        // Nibbled at, and still there tomorrow.
        let nibbled = [1_301.0, 1_298.0, 1_295.0, 1_292.0];
        assert_eq!(origin(&nibbled, &[]), Course::Stands);
        // From two points nothing is told.
        assert_eq!(origin(&[10.0, 30.0], &[]), Course::Stands);
    }

    #[test]
    fn a_pile_that_was_freed_is_judged_from_then_on() {
        // Freed from 68,000 to 5,000, and the leak goes on.
        let back = [68_000.0, 68_000.0, 5_000.0, 7_300.0, 9_700.0, 12_000.0];
        let Course::Grows(trend) = origin(&back, &[]) else {
            panic!("it grows")
        };
        assert!((250.0..270.0).contains(&trend.per_second), "{trend:?}");
        // Freed, and it stands for longer than a drain takes.
        let mut stands = vec![68_000.0, 40_000.0];
        stands.extend(std::iter::repeat_n(5_000.0, 80));
        assert_eq!(origin(&stands, &[]), Course::Stands);
        // A deploy that drains, and a few that come with the next.
        assert_eq!(origin(&[0.0, 400.0, 3.0, 5.0, 8.0], &[]), Course::Drains);
        let sawtooth = [0.0, 400.0, 100.0, 200.0, 300.0];
        assert_eq!(origin(&sawtooth, &[]), Course::Stands);
        let slower = [9_000.0, 5_000.0, 3_000.0, 2_900.0, 2_850.0];
        assert_eq!(origin(&slower, &[]), Course::Drains);
    }

    #[test]
    fn ages_tell_of_a_loop_too_slow_for_the_watch() {
        let ages: Vec<u64> = (0..=10).map(|i| i * 86_400).collect();
        let Course::HasGrown(trend) = origin(&[68_440.0, 68_440.0, 68_441.0, 68_441.0], &ages)
        else {
            panic!("it has grown")
        };
        let per_day = trend.per_second * 86_400.0;
        assert!((6_500.0..7_200.0).contains(&per_day), "{per_day}");
    }

    #[test]
    fn a_burst_of_long_ago_is_no_growth() {
        let ages: Vec<u64> = (0..=10).map(|i| 40_000 + i).collect();
        assert_eq!(origin(&[500.0, 500.0, 500.0], &ages), Course::Stands);
        let stopped: Vec<u64> = (0..=10).map(|i| 40_000 + 8_640 * i).collect();
        assert_eq!(origin(&[500.0, 500.0, 500.0], &stopped), Course::Stands);
    }
}
