//! Chance with a seed: splitmix64.

pub struct Random(u64);

impl Random {
    /// Another row for each case of each seed.
    pub fn new(seed: u64, case: u64) -> Self {
        let mut random = Self(seed);
        let first = random.next();
        Self(first ^ case.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
