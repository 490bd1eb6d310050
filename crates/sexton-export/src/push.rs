//! Sends what the ring holds to receivers: OTLP, Pyroscope, Parca.
//!
//! A [`Channel`] is one kind of data for one receiver. It reads the ring window by window from a
//! place that it remembers, keeps at most one window in memory, and goes on only when the receiver
//! has taken it or will never take it. It reads no clock and opens no connection itself: a
//! [`Pusher`] does, on a thread for each receiver.

mod channel;
mod load;
mod logs;
mod messages;
mod otlp;
mod owner;
mod parca;
mod pusher;
mod pyroscope;
mod receiver;
mod source;
mod stats;

pub use channel::{Channel, Next, Post, Reply, Request};
pub use owner::Owners;
pub use pusher::{Log, OwnFigures, Pace, Pusher, Settings};
pub use receiver::{Encoding, Receiver, Signal};
pub use source::{Now, Source};
pub use stats::Stats;

#[cfg(test)]
mod tests;
