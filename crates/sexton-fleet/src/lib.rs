//! The fleet: reports of many nodes in a bucket, and what its bad nodes have in common.

pub mod bucket;
pub mod commands;
pub mod compare;
pub mod growth;
pub mod jobs;
pub mod lake;
pub mod page;
pub mod parallel;
pub mod question;
pub mod show;
pub mod simulate;
pub mod sql;
pub mod stats;
