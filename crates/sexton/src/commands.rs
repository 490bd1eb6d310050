//! One file per command.

pub mod doctor;
pub mod generate;
pub mod record;
pub mod watch;
pub mod zombies;
