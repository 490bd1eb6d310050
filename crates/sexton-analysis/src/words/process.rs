//! What to type about processes.

use std::fmt::Display;

/// Pauses a process, and says how it goes on.
pub(crate) fn pause(pid: impl Display) -> String {
    format!("sudo kill -STOP {pid}  # resume: sudo kill -CONT {pid}")
}
