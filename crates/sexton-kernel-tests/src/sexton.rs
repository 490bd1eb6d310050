//! The program itself, as users run it.

use std::path::PathBuf;

/// Names the binary that `cargo xtask test kernel` has built.
pub const SEXTON: &str = "SEXTON";

/// The binary; `None` when nobody says where it is.
pub fn binary() -> Option<PathBuf> {
    std::env::var_os(SEXTON).map(PathBuf::from)
}
