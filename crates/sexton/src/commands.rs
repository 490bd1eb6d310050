//! One file per command.

pub mod agent;
pub mod bundle;
pub mod check;
pub mod diagnose;
pub mod doctor;
pub mod drill;
pub mod explain;
pub mod fix;
pub mod fleet;
pub mod generate;
pub mod history;
pub mod image;
pub mod incidents;
pub mod kubernetes;
pub mod profile;
pub mod reboot_needed;
pub mod record;
pub mod serve;
pub mod status;
pub mod verify_boot;
pub mod watch;
pub mod zombies;
