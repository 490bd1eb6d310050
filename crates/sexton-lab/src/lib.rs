//! The lab: scenarios with a known truth, the job that plays one, what must come of it, and
//! a real systemd in namespaces of this machine to play it in. Guests play the same jobs.

pub mod checks;
mod files;
pub mod job;
pub mod night;
pub mod outcome;
pub mod scenario;
pub mod script;
pub mod systemd;
