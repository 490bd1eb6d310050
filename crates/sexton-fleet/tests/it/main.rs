//! The statistics beside another implementation, and the real binary on invented fleets.

#![cfg(test)]

mod azure;
mod engines;
mod faults;
mod fleets;
mod growth;
mod jobs;
mod known;
mod push;
mod s3;
mod serve;
mod sql;
mod support;
