//! Recordings of perf, read and compared with what perf and its peers say of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod damage;
mod export;
mod flamescope;
mod folded;
mod growth;
mod perf_data;
mod support;
