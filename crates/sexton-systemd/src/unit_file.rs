//! Units as systemd reads them from files.
//!
//! - `state`: search paths, links, masks, aliases: what `systemctl list-unit-files` says;
//! - `preset`: what the vendor wanted;
//! - `settings`, `restart`, `timer`, `start`: what a unit is set to do, how often, and
//!   whether it can;
//! - `set`: all units of a root, and `graph`: what would start each.

pub mod file;
pub mod interpreter;
pub mod preset;
pub mod restart;
pub mod settings;
pub mod span;
pub mod start;
pub mod state;
pub mod timer;

mod accounts;
mod alias;
mod boot;
pub(crate) mod condition;
mod folder;
mod graph;
mod made;
mod mounts;
mod os;
mod places;
mod program;
mod set;
mod sysv;
mod tree;
mod udev;
mod version;

pub use folder::Want;
pub(crate) use graph::start_of;
pub use graph::{Edge, Graph};
pub use os::Os;
pub use set::{Unit, UnitSet};
pub use sexton_model::unit_name as name;
pub use tree::Tree;
