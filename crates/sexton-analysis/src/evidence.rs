//! Views of the evidence that rules, links and explanations share: each is worked out once
//! for a case, and judges nothing.
//!
//! - `creations`: cgroups that were created, by whom, and what became of them;
//! - `requesters`: who had a daemon create them;
//! - `container_runs`: containers, from start to exit;
//! - `origins`: what censuses say of cgroups that are alike, and `growth` of their number;
//! - `nameless`: dying cgroups that could be counted and not named;
//! - `cpu_load`: how full the cores were, who had them and who waited, by `owners`;
//! - `own_work`: what the recording sexton did itself;
//! - `readers`: who had the kernel work on memory cgroups, by `kernel_walks` on its stack;
//! - `kernel_log`, `nic_troubles`: known lines, and what went wrong with NICs;
//! - `disk_load`: times in which a disk was busy, who used it and who waited;
//! - `limits`: how near limits are, and which are as tight as they are meant to be;
//! - `last_lines`: what units wrote before they failed;
//! - `memory_load`: times in which tasks waited for memory, and whose cgroups and processes;
//! - `kernel_wait`: what a task waits for, by the kernel functions it is in;
//! - `oom_kills`: processes that the kernel killed for lack of memory;
//! - `unit_files`: what the files of units say;
//! - `restart_loops`, `short_runs`: units and containers that come again and again;
//! - `read_cost`: when a read of memory statistics is slow;
//! - `recognized`: what signatures say of what was recorded;
//! - `known`: daemons and clients that signatures name.

pub(crate) mod container_runs;
pub(crate) mod cpu_load;
pub(crate) mod creations;
pub(crate) mod disk_load;
pub(crate) mod growth;
pub(crate) mod kernel_log;
pub(crate) mod kernel_wait;
pub(crate) mod last_lines;
pub(crate) mod limits;
pub(crate) mod makers;
pub(crate) mod memory_load;
pub(crate) mod nameless;
pub(crate) mod nic_troubles;
pub(crate) mod oom_kills;
pub(crate) mod origins;
pub(crate) mod own_work;
pub(crate) mod owners;
pub(crate) mod read_cost;
pub(crate) mod readers;
pub mod recognized;
pub(crate) mod requesters;
pub(crate) mod restart_loops;
pub(crate) mod short_runs;
pub(crate) mod span;
pub(crate) mod trend;
pub mod unit_files;

pub(crate) use sexton_signatures::{kernel_walks, requesters as known};
