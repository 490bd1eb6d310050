//! systemd, as sexton meets it. One folder for each way to it:
//!
//! - `unit_file`: units read from the files of any root, a live node or an image that has not
//!   booted. Nothing is executed;
//! - `packages`: which package put a file there;
//! - `signatures`: known offenders among units and shapes of deployments, as data;
//! - `survey`: all of these, put together.

pub mod packages;
pub mod signatures;
pub mod survey;
pub mod unit_file;
