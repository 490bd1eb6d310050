//! `sexton zombies`: the census of memory cgroups.

mod json;
mod text;

pub use json::json;
pub use text::text;

/// What to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum By {
    /// Groups of alike cgroups.
    #[default]
    Origin,
    /// systemd units.
    Unit,
    /// The files that pin dying ones.
    File,
}

/// How to list it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// What to list in text. JSON holds all three.
    pub by: By,
    /// At most so many lines of each list; `None` is the default of the format.
    pub top: Option<usize>,
    /// Also list every cgroup.
    pub all: bool,
}
