//! For tests only.

pub mod arbitrary;
pub mod captured;
pub mod daemon;
pub mod snapshot;
pub mod story;
mod tree;

pub use tree::{TempTree, fixture};
