//! Names of real programs, made by the compiler and the tools of this machine.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod hostile;
mod made;
mod names;
mod replaced;
