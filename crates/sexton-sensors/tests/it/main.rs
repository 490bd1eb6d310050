//! Sensors on nodes that are only folders: the real path from files to records.

mod census;
mod contention;
mod cores;
mod disks;
mod filesystems;
mod host;
mod limits;
mod memory;
mod network;
mod node;
mod pressure;
mod processes;
mod tally;
