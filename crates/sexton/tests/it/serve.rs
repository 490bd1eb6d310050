//! `sexton serve`: the real server on a port of its own, and clients of all sorts.

mod answers;
mod client;
mod grows;
mod hostile;
mod schemathesis;
mod uploads;

pub use client::{Answer, Server, fixture};
