//! systemd over D-Bus: through the system bus, or straight to the private socket of a manager.
//!
//! Every call has a deadline, every message a limit, and a user's socket is spoken to only if
//! that user serves it. zbus encodes and decodes what messages carry; why the connection is not
//! its own stands in ARCHITECTURE.md, "How systemd is asked".

mod connection;
mod error;
pub mod fuzzing;
mod manager;
mod message;
mod property;
mod session;
pub mod users;

pub use error::{BusError, Malformed};
pub use manager::Manager;
pub use property::{Properties, Value};
pub use session::{ListedUnit, Session, Signal};

#[cfg(test)]
mod tests;
