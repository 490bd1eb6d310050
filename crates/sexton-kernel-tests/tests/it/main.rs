//! Tests on a real kernel. Each is ignored in a plain run, so that it shows as
//! not run; `cargo xtask test kernel` runs them all.

mod busy_core;
mod census;
mod cgroups;
mod cores;
mod exits;
mod hostile;
mod klog;
mod napi;
mod nics;
mod pressure;
mod runq;
mod sensor;
mod store;
mod units;
mod walk;
