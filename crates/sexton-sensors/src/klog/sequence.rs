//! The numbers of the lines, which say how many were lost.

/// Where we are in the numbers. Every line has one more than the line before it.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    next: Option<u64>,
}

/// Lines that were overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// So many, before the first line that was read.
    BeforeFirst(u64),
    /// So many, between two that were read.
    Between(u64),
}

impl Sequence {
    /// Takes down the number of a line and says what was lost before it.
    pub(super) fn advance(&mut self, seq: u64) -> Option<Lost> {
        let before = self.next.replace(seq.saturating_add(1));
        let n = seq.saturating_sub(before.unwrap_or(0));
        match before {
            _ if n == 0 => None,
            None => Some(Lost::BeforeFirst(n)),
            Some(_) => Some(Lost::Between(n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[u64], expected: &[Lost]) {
        let mut sequence = Sequence::default();
        let lost: Vec<Lost> = numbers
            .iter()
            .filter_map(|seq| sequence.advance(*seq))
            .collect();
        assert_eq!(lost, expected);
    }

    #[test]
    fn holes_are_noticed() {
        check(&[0, 1, 2, 3], &[]);
        check(&[0, 1, 5, 6], &[Lost::Between(3)]);
        check(&[7, 8], &[Lost::BeforeFirst(7)]);
        check(&[7, 107], &[Lost::BeforeFirst(7), Lost::Between(99)]);
        check(&[u64::MAX, u64::MAX, 3], &[Lost::BeforeFirst(u64::MAX)]);
    }
}
