//! Which of several symbols names an address: the one that perf would choose, so that what is
//! shown here and there can be compared.

use std::cmp::Reverse;

/// How far others may see a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// Another symbol may take its place.
    Weak,
    /// Seen in its own file only.
    Local,
    /// Seen by all.
    Global,
}

/// What can be told without the name: a symbol with a size comes first, then its binding.
/// Below 8.
pub fn rank(binding: Binding, has_size: bool) -> u8 {
    binding as u8 + if has_size { 4 } else { 0 }
}

/// Of symbols of one rank the greatest of these wins: fewer underscores in front, then the
/// longer name.
pub fn merit(name: &[u8]) -> (Reverse<usize>, usize) {
    let n_underscores = name.iter().take_while(|byte| **byte == b'_').count();
    (Reverse(n_underscores), name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_perf_chooses() {
        assert!(rank(Binding::Weak, true) > rank(Binding::Global, false));
        assert!(rank(Binding::Global, true) > rank(Binding::Local, true));
        assert!(rank(Binding::Local, true) > rank(Binding::Weak, true));
        assert!(merit(b"malloc") > merit(b"__libc_malloc"));
        assert!(merit(b"cfree") > merit(b"free"));
    }
}
