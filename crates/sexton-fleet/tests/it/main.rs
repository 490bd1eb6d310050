//! The statistics beside another implementation, and the real binary on invented fleets.

mod faults;
mod fleets;
mod known;
mod push;
mod support;
