//! Makes real trouble on this machine, in known amounts, and cleans it up.

pub mod cores;
pub mod hog;
pub mod netns;
pub mod network;
pub mod nursery;
pub mod require;
pub mod systemd;
pub mod watching;
