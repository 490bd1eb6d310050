//! What `cargo xtask dist` makes.

use std::path::PathBuf;

/// Names the folder that it made.
pub const DIST: &str = "SEXTON_DIST";

/// The one file of it whose name ends so; `None` when the environment does not name the folder.
pub fn part(ending: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(DIST)?);
    let entries = std::fs::read_dir(folder).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.to_string_lossy().ends_with(ending))
}
