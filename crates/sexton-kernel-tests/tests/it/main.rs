//! Tests on a real kernel. Each is ignored in a plain run, so that it shows as
//! not run; `cargo xtask test kernel` runs them all.

mod agent;
mod busy_core;
mod census;
mod cgroups;
mod containers;
mod cores;
mod drill;
mod exits;
mod fix;
mod fix_units;
mod hostile;
mod klog;
mod limits;
mod napi;
mod nics;
mod pipelines;
mod pressure;
mod processes;
mod profiles;
mod runq;
mod scenarios;
mod sensor;
mod serve;
mod slow_disk;
mod stacks;
mod store;
mod survey;
mod symbols;
mod symptoms;
mod units;
mod unprivileged;
mod verdicts;
mod walk;
mod without_bpf;
