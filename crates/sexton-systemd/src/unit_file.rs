//! Units as systemd reads them from files.
//!
//! - `state`: search paths, links, masks, aliases: what `systemctl list-unit-files` says;
//! - `preset`: what the vendor wanted;
//! - `settings`, `restart`, `timer`, `start`: what a unit is set to do, how often, and
//!   whether it can;
//! - `set`: all units of a root, `graph`: what would start each, and `need`: what cannot be
//!   masked without breaking another.

pub mod file;
pub mod interpreter;
pub mod name;
pub mod preset;
pub mod restart;
pub mod settings;
pub mod span;
pub mod start;
pub mod state;
pub mod timer;

mod boot;
pub(crate) mod condition;
mod folder;
mod graph;
mod need;
mod os;
mod program;
mod set;
mod sysv;
mod tree;
mod udev;

pub use folder::Want;
pub use graph::{Edge, Graph};
pub use need::{Need, withheld};
pub use os::Os;
pub use set::{Unit, UnitSet};
pub use tree::Tree;
