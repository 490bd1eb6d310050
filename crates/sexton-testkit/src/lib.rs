//! For tests only.

pub mod arbitrary;
pub mod captured;
pub mod daemon;
pub mod snapshot;
pub mod story;
mod tree;
pub mod xfs;

pub use tree::{TempTree, fixture};
