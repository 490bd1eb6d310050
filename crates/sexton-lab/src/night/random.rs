//! Numbers by chance that are the same for the same seed, on every machine: SplitMix64.

/// A row of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The row of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of these, both ends included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        let n = most.saturating_sub(least).saturating_add(1);
        least + self.next() % n
    }

    /// An index of a list of this length, which is not empty.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.between(0, n.saturating_sub(1) as u64)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_row_is_that_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.next(), random.next()], expected);
    }

    #[test]
    fn both_ends_are_drawn() {
        let mut random = Random::new(7);
        let mut drawn: Vec<u64> = (0..100).map(|_| random.between(3, 5)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [3, 4, 5]);
    }
}
