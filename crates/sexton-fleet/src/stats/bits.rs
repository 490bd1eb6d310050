//! Sets of nodes, as bits.

/// A set of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// No node of `n`.
    pub fn none(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)])
    }

    /// All of `n` nodes.
    pub fn all(n: usize) -> Self {
        let mut bits = Self(vec![u64::MAX; n.div_ceil(64)]);
        if !n.is_multiple_of(64)
            && let Some(last) = bits.0.last_mut()
        {
            *last = (1 << (n % 64)) - 1;
        }
        bits
    }

    /// Adds a node.
    pub fn set(&mut self, node: usize) {
        self.0[node / 64] |= 1 << (node % 64);
    }

    /// Takes a node out.
    pub fn clear(&mut self, node: usize) {
        self.0[node / 64] &= !(1 << (node % 64));
    }

    /// Whether a node is in it.
    pub fn has(&self, node: usize) -> bool {
        self.0[node / 64] >> (node % 64) & 1 == 1
    }

    /// How many nodes are in it.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// How many are in both.
    pub fn count_and(&self, other: &Self) -> u64 {
        let words = self.0.iter().zip(&other.0);
        words.map(|(a, b)| u64::from((a & b).count_ones())).sum()
    }

    /// How many of those in both are in `these`, and how many in `those`.
    pub fn count_and_each(&self, other: &Self, these: &Self, those: &Self) -> (u64, u64) {
        let words = self
            .0
            .iter()
            .zip(&other.0)
            .zip(these.0.iter().zip(&those.0));
        words.fold((0, 0), |(n_these, n_those), ((a, b), (c, d))| {
            let both = a & b;
            (
                n_these + u64::from((both & c).count_ones()),
                n_those + u64::from((both & d).count_ones()),
            )
        })
    }

    /// Those in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    /// Those in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    /// Those in this one and not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & !b).collect())
    }

    /// Its nodes, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                (rest != 0).then(|| {
                    rest &= rest - 1;
                    at * 64 + bit
                })
            })
        })
    }
}
