//! For tests only.

pub mod snapshot;
mod tree;

pub use tree::{TempTree, fixture};
