//! Stretches of time, and whether they meet.

use std::time::Duration;

use sexton_model::finding::{Episode, Finding};
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

/// Episodes that a finding keeps; the longest of more.
pub(crate) const MAX_EPISODES: usize = 32;

/// A sample covers at most so much time before it; what is longer is a hole.
const MOST_COVERED: Duration = Duration::from_secs(5);

/// What a first sample covers when there is no second to tell.
const FIRST_COVERS: Duration = Duration::from_secs(1);

/// All of time.
pub(crate) const EVER: (Moment, Moment) = (Moment::from_ns(0), Moment::from_ns(u64::MAX));

/// The mean over time of samples, which are in its order, within these spans. A sample
/// covers the time since the one before, and sensors take more of them when much happens:
/// counted one by one, busy times would weigh too much. `None` when nothing is covered.
pub(crate) fn mean(samples: &[(Moment, f64)], within: &[(Moment, Moment)]) -> Option<f64> {
    let until_next = samples.get(1).map(|next| next.0.since(samples[0].0));
    let first = until_next.unwrap_or(FIRST_COVERS).min(MOST_COVERED);
    let (mut sum, mut weight) = (0.0, 0.0);
    for (i, (at, value)) in samples.iter().enumerate() {
        let covers = match i.checked_sub(1) {
            Some(before) => at.since(samples[before].0).min(MOST_COVERED),
            None => first,
        };
        let from = earlier(*at, covers);
        let inside = within
            .iter()
            .map(|span| (*at).min(span.1).since(from.max(span.0)).as_secs_f64());
        let inside: f64 = inside.sum();
        sum += value * inside;
        weight += inside;
    }
    (weight > 0.0).then(|| sum / weight)
}

/// The longest stretch in which samples, which are in the order of time, were at least so large.
/// A sample is about the time since the one before; smaller ones for up to `pause` do not end a
/// stretch.
pub(crate) fn longest_above(
    samples: &[(Moment, f64)],
    least: f64,
    pause: Duration,
) -> Option<(Moment, Moment)> {
    let mut spans: Vec<(Moment, Moment)> = Vec::new();
    for (i, (at, value)) in samples.iter().enumerate() {
        if *value < least {
            continue;
        }
        let from = i.checked_sub(1).map_or(*at, |before| samples[before].0);
        match spans.last_mut() {
            Some(last) if from.since(last.1) <= pause => last.1 = *at,
            _ => spans.push((from, *at)),
        }
    }
    let longest = |(from, to): &(Moment, Moment)| (to.since(*from), *from);
    spans.into_iter().max_by_key(longest)
}

/// The growth of a counter in a second, by its samples within a span. `None` with fewer than two;
/// a counter that began anew has not grown.
pub(crate) fn growth(samples: &[(Moment, f64)], (from, to): (Moment, Moment)) -> Option<f64> {
    let mut inside = samples.iter().filter(|(at, _)| *at >= from && *at <= to);
    let first = inside.next()?;
    let last = inside.next_back()?;
    let seconds = last.0.since(first.0).as_secs_f64();
    (seconds > 0.0).then(|| (last.1 - first.1).max(0.0) / seconds)
}

/// Whether two episodes overlap, give or take so much.
pub(crate) fn overlap(a: &Episode, b: &Episode, slack: Duration) -> bool {
    a.from <= b.to.after(slack) && b.from <= a.to.after(slack)
}

/// How long it lasted.
pub(crate) fn length(episode: &Episode) -> Duration {
    episode.to.since(episode.from)
}

/// The longest ones, in the order of time.
pub(crate) fn longest(mut episodes: Vec<Episode>) -> Vec<Episode> {
    episodes.sort_by_key(|episode| (std::cmp::Reverse(length(episode)), episode.from));
    episodes.truncate(MAX_EPISODES);
    episodes.sort_by_key(|episode| (episode.from, episode.to));
    episodes
}

/// The episodes of two findings that are at one place at one time.
pub(crate) fn meetings<'a>(
    a: &'a Finding,
    b: &'a Finding,
    place: &'a Subject,
    slack: Duration,
) -> impl Iterator<Item = (&'a Episode, &'a Episode)> {
    let at_place = move |episode: &&Episode| episode.touched.contains(place);
    a.episodes.iter().filter(at_place).flat_map(move |one| {
        let others = b.episodes.iter().filter(at_place);
        others
            .filter(move |other| overlap(one, other, slack))
            .map(move |other| (one, other))
    })
}

/// A moment so much earlier; the first there is when that would be before it.
pub(crate) fn earlier(at: Moment, time: Duration) -> Moment {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Moment::from_ns(at.as_ns().saturating_sub(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(from: u64, to: u64) -> Episode {
        Episode {
            from: Moment::from_ns(from),
            to: Moment::from_ns(to),
            touched: Vec::new(),
        }
    }

    /// Times in seconds.
    fn check_mean(samples: &[(u64, f64)], within: (u64, u64), expected: Option<f64>) {
        let at = |seconds: u64| Moment::from_ns(seconds * 1_000_000_000);
        let samples: Vec<_> = samples.iter().map(|(s, value)| (at(*s), *value)).collect();
        let mean = mean(&samples, &[(at(within.0), at(within.1))]);
        assert_eq!(mean, expected, "{samples:?}");
    }

    #[test]
    fn samples_weigh_as_much_as_they_cover() {
        let uneven = [(10, 0.0), (14, 0.0), (15, 1.0), (16, 1.0)];
        check_mean(&uneven, (10, 16), Some(2.0 / 6.0));
        check_mean(&uneven, (15, 16), Some(1.0));
        // Nothing is known of a hole but its last seconds.
        check_mean(&[(10, 0.0), (100, 1.0)], (20, 100), Some(1.0));
        check_mean(&[(10, 0.0), (100, 1.0)], (20, 90), None);
        check_mean(&[(10, 0.5)], (0, 100), Some(0.5));
        check_mean(&[], (0, 100), None);
    }

    #[test]
    fn the_longest_stretch_and_the_growth_of_a_counter() {
        let at = |seconds: u64| Moment::from_ns(seconds * 1_000_000_000);
        let samples = |values: &[(u64, f64)]| -> Vec<(Moment, f64)> {
            values.iter().map(|(s, value)| (at(*s), *value)).collect()
        };
        let busy = samples(&[(1, 0.0), (2, 1.0), (3, 0.1), (4, 1.0), (9, 0.0), (10, 1.0)]);
        let pause = Duration::from_secs(3);
        assert_eq!(longest_above(&busy, 0.9, pause), Some((at(1), at(4))));
        assert_eq!(longest_above(&busy, 2.0, pause), None);
        let counter = samples(&[(1, 5.0), (2, 10.0), (4, 40.0), (9, 3.0)]);
        assert_eq!(growth(&counter, (at(2), at(4))), Some(15.0));
        assert_eq!(growth(&counter, (at(4), at(9))), Some(0.0));
        assert_eq!(growth(&counter, (at(2), at(3))), None);
    }

    #[test]
    fn stretches_meet_or_do_not() {
        let slack = Duration::from_nanos(5);
        assert!(overlap(&episode(10, 20), &episode(20, 30), Duration::ZERO));
        assert!(!overlap(&episode(10, 20), &episode(21, 30), Duration::ZERO));
        assert!(overlap(&episode(26, 30), &episode(10, 21), slack));
        assert!(!overlap(&episode(27, 30), &episode(10, 21), slack));
    }

    #[test]
    fn the_longest_are_kept_in_the_order_of_time() {
        let many: Vec<Episode> = (0..100).map(|n| episode(n * 1000, n * 1000 + n)).collect();
        let kept = longest(many);
        assert_eq!(kept.len(), MAX_EPISODES);
        assert_eq!(kept[0], episode(68_000, 68_068));
        assert_eq!(kept[31], episode(99_000, 99_099));
    }
}
