//! Rehearses the founding incident on this machine, in a small way that ends by itself.
//!
//! A drill is one process, which the command runs in, and its parts, each a process of its
//! own that dies with it:
//!
//! - `churner` looks healthy, appends to a log and leaves dying memory cgroups;
//! - `reader` reads memory statistics and holds one core in the kernel, for at most nine
//!   tenths of each second;
//! - `network` has two devices of its own, whose polling is bound to that core;
//! - `janitor` waits for the end of the drill, however that comes, and clears up.
//!
//! Killed at any moment, the janitor clears up after the drill; should both be killed, the
//! next drill does. Nothing is made outside of one memory cgroup, one folder and one
//! network namespace, all of which carry the name of the drill.

mod clean;
mod core_choice;
mod error;
mod parts;
mod plan;
mod running;
mod sandbox;

pub use clean::{Cleaned, sweep};
pub use error::DrillError;
pub use parts::run as run_part;
pub use plan::{Options, Plan};
pub use running::Drill;
pub use sexton_remedy::Consent;
