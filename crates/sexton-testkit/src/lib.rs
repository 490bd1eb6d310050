//! For tests only.

pub mod captured;
pub mod snapshot;
pub mod story;
mod tree;

pub use tree::{TempTree, fixture};
