//! For tests only.

pub mod arbitrary;
pub mod daemon;
pub mod snapshot;
pub mod story;
mod tree;

pub use tree::{TempTree, fixture};
