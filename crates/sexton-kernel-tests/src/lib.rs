//! Makes real trouble on this machine, in known amounts, and cleans it up.

pub mod cache;
pub mod churner;
pub mod cores;
pub mod drills;
pub mod dump;
pub mod hog;
pub mod interrupted;
pub mod judging;
pub mod netns;
pub mod network;
pub mod nursery;
pub mod page;
pub mod recorders;
pub mod release;
pub mod require;
pub mod scenario;
pub mod sexton;
pub mod slow_disk;
pub mod spinner;
pub mod storm;
pub mod watching;
pub mod without_bpf;

pub use sexton_lab::systemd;
