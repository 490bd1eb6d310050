//! systemd, as sexton meets it. One folder for each way to it:
//!
//! - `bus`: managers over D-Bus, the node's and those of users;
//! - `journal`: files of the journal, as far as it takes to tell when a unit wrote;
//! - `unit_file`: units read from the files of any root, a live node or an image that has not
//!   booted. Nothing is executed;
//! - `packages`: which package put a file there;
//! - `survey`: all of these, put together.

pub mod bus;
pub mod journal;
pub mod packages;
pub mod survey;
pub mod unit_file;
