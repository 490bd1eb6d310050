//! Units as systemd sees them, read from the files of any root: a live system or an image
//! that has not booted. Nothing is executed.
//!
//! - `state`: search paths, links, masks, aliases: what `systemctl list-unit-files` says;
//! - `preset`: what the vendor wanted;
//! - `settings`, `restart`, `timer`, `start`: what a unit is set to do, how often, and
//!   whether it can;
//! - `graph`: what would start it;
//! - `packages`: who put it there;
//! - `lore`: known offenders and shapes of deployments, as data;
//! - `survey`: all of that, put together.

pub mod file;
pub mod glob;
pub mod interpreter;
pub mod lore;
pub mod name;
pub mod packages;
pub mod preset;
pub mod restart;
pub mod settings;
pub mod span;
pub mod start;
pub mod state;
pub mod survey;
pub mod timer;

mod condition;
mod folder;
mod graph;
mod os;
mod set;
mod sysv;
mod tree;
mod udev;

pub use folder::Want;
pub use graph::{Edge, Graph};
pub use os::Os;
pub use set::{Unit, UnitSet};
pub use tree::Tree;
