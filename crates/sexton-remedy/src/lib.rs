//! Plans what ends a trouble, and carries it out on consent. The only crate that changes a
//! node or an image.
//!
//! - `source`: stops what makes the trouble;
//! - `purge`: has the kernel let go of what it left, rung by rung;
//! - `journal`: how to take it back, written before anything is done;
//! - `fix`: all of that in order, looking before and after each step;
//! - `outcome`: what the last fix came to, kept for `sexton reboot-needed`;
//! - `image`: turns units off in a root that has not booted;
//! - `orders`, `ledger`, `request`: what the agent's helper may do by itself, how often, and how
//!   it is asked.

mod command;
mod consent;
mod error;
mod fix;
pub mod image;
pub mod journal;
pub mod ledger;
pub mod lock;
pub mod orders;
pub mod outcome;
mod purge;
pub mod request;
mod sentinel;
mod source;
mod strain;
mod undo;

pub use consent::Consent;
pub use error::RemedyError;
pub use fix::{Eyes, Fix, Source};
pub use purge::{Aim, Allowance};
pub use sentinel::{SENTINEL, ask_for_reboot};
pub use source::{Container, How, Risk, Unit};
pub use undo::{Undone, undo};
