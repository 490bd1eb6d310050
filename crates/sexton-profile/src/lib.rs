//! Profiles: samples of what ran, each with its core and its moment.
//!
//! Reads what others recorded ([`import`]), answers where the time went ([`heatmap`],
//! [`busiest`], [`flame`], [`top`]), and writes what other viewers open ([`export`]). Pure:
//! bytes and rows come in, answers go out. Files are opened by the caller, who is asked for
//! names of functions through [`symbols::Symbols`].
//!
//! Whoever has samples hands them, one by one and in the order of their times, to an
//! [`import::Sink`]; every question is one.

pub mod busiest;
pub mod callers;
pub mod diff;
pub mod export;
pub mod filter;
pub mod flame;
pub mod flame_text;
pub mod heatmap;
pub mod idle;
pub mod import;
pub mod kept;
pub mod merge;
pub mod names;
pub mod proto;
pub mod symbols;
pub mod tables;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod top;
pub mod walk;
pub mod weight;
pub mod window;

/// The core of a sample whose recording does not say.
pub const NO_CPU: u32 = u32::MAX;
