//! How many series each metric may have when all of them share one bound.

/// The most series of one metric, so that all together fit into the room: metrics with few keep
/// them all, and those with many share what is left.
pub(crate) fn share(counts: impl IntoIterator<Item = usize>, room: usize) -> usize {
    let mut counts: Vec<usize> = counts.into_iter().filter(|count| *count > 0).collect();
    counts.sort_unstable();
    let mut left = room;
    let mut n = counts.len();
    for count in counts {
        let each = left / n;
        if count > each {
            return each;
        }
        left -= count;
        n -= 1;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(counts: &[usize], room: usize, expected: usize) {
        assert_eq!(share(counts.iter().copied(), room), expected, "{counts:?}");
        let total: usize = counts.iter().map(|count| (*count).min(expected)).sum();
        assert!(total <= room, "{counts:?}");
    }

    #[test]
    fn few_keep_theirs_and_many_share_the_rest() {
        check(&[1, 2, 3], 6, usize::MAX);
        check(&[2, 2, 10_000], 100, 96);
        check(&[5, 500, 500], 105, 50);
        check(&[10; 20], 100, 5);
        check(&[], 0, usize::MAX);
        check(&[1, 1, 1], 2, 0);
    }
}
