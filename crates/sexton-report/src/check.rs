//! `sexton check`: the gate, in the words of whoever asks.

mod formats;
mod text;

pub use formats::{json, junit, nagios, prom, sarif};
pub use text::{npd, text};
