//! Remembers which stacks chains of addresses became: most samples have the callers of one
//! before, so that only their innermost address must be looked at.

use sexton_model::stack::{CodeKind, StackId};

/// Chains that are remembered; a power of two. As many as a core's cache holds.
const N_KNOWN: usize = 1 << 16;

/// The addresses of a chain from its outermost one on, mixed with numbers that nobody can
/// foresee, so that no file can be made whose chains meet. Of these bits 80 are compared: by
/// chance two chains meet once in 10^24.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain(u64, u64);

/// What became of chains.
pub(super) struct Chains {
    known: Vec<(u64, StackId)>,
    secrets: [u64; 4],
    /// Told apart: the owner, and addresses by whose they are.
    kinds: [u64; 4],
}

impl Default for Chains {
    fn default() -> Self {
        let state = ahash::RandomState::new();
        let secret = |n: u8| state.hash_one(n);
        Self {
            known: Vec::new(),
            secrets: [1, 2, 3, 4].map(|n| secret(n) | 1),
            kinds: [5, 6, 7, 8].map(secret),
        }
    }
}

impl Chains {
    /// The beginning of a chain in memory that has this owner and this stamp; the kernel's is
    /// nobody's.
    pub(super) fn begin(&self, owner: Option<(u32, u32)>) -> Chain {
        let owner = owner.map(|(pid, stamp)| u64::from(pid) << 32 | u64::from(stamp));
        let start = Chain(self.secrets[2], self.secrets[3]);
        match owner {
            Some(owner) => self.mix(start, self.kinds[0] ^ owner),
            None => start,
        }
    }

    /// The chain with one more address, which `chain` called.
    pub(super) fn add(&self, chain: Chain, kind: CodeKind, address: u64) -> Chain {
        let kind = match kind {
            CodeKind::Kernel => self.kinds[1],
            CodeKind::User => self.kinds[2],
            CodeKind::Unknown => self.kinds[3],
        };
        self.mix(chain, kind ^ address)
    }

    /// The upper half of a product depends on all bits of both, as the lower does not.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the other half is added to it"
    )]
    fn mix(&self, chain: Chain, next: u64) -> Chain {
        let mix = |before: u64, secret: u64| {
            let product = u128::from(before ^ next) * u128::from(secret);
            before.rotate_left(23) ^ (product as u64) ^ (product >> 64) as u64
        };
        Chain(mix(chain.0, self.secrets[0]), mix(chain.1, self.secrets[1]))
    }

    /// What this chain became, if it is remembered.
    pub(super) fn get(&self, chain: Chain) -> Option<StackId> {
        let (known, stack) = self.known.get(slot(chain))?;
        (*known == chain.0).then_some(*stack)
    }

    /// Remembers what it became, in place of another one.
    pub(super) fn set(&mut self, chain: Chain, stack: StackId) {
        if self.known.is_empty() {
            self.known.resize(N_KNOWN, (0, StackId::EMPTY));
        }
        self.known[slot(chain)] = (chain.0, stack);
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "any of its bits are as good as others"
)]
fn slot(chain: Chain) -> usize {
    chain.1 as usize % N_KNOWN
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(chains: &Chains, owner: Option<(u32, u32)>, addresses: &[(CodeKind, u64)]) -> Chain {
        let start = chains.begin(owner);
        addresses
            .iter()
            .fold(start, |chain, &(kind, at)| chains.add(chain, kind, at))
    }

    /// Its owner, and its addresses.
    type Any = (Option<(u32, u32)>, Vec<(CodeKind, u64)>);

    fn any_chain() -> impl Strategy<Value = Any> {
        let kind = prop::sample::select(vec![CodeKind::Kernel, CodeKind::User, CodeKind::Unknown]);
        let owner = prop::option::of((0u32..3, 0u32..3));
        (owner, prop::collection::vec((kind, 0u64..4), 0..5))
    }

    proptest! {
        /// Owner, kinds, addresses and their order tell chains apart.
        #[test]
        fn a_chain_becomes_what_it_was_said_to(list in prop::collection::vec(any_chain(), 1..50)) {
            let mut chains = Chains::default();
            let mut said = Vec::new();
            for (n, chain) in list.into_iter().enumerate() {
                let key = of(&chains, chain.0, &chain.1);
                let known = said.iter().rev().find(|(other, _)| *other == chain);
                // Another may have taken its place; a wrong one is never there.
                if let Some(stack) = chains.get(key) {
                    prop_assert_eq!(Some(stack), known.map(|(_, stack)| *stack));
                }
                let stack = StackId(u32::try_from(n).expect("few"));
                chains.set(key, stack);
                prop_assert_eq!(chains.get(key), Some(stack));
                said.push((chain, stack));
            }
        }
    }
}
