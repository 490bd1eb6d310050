//! The real binary, as users run it.

mod command;
mod contract;
mod generate;
mod help;
mod readme;
mod record;
mod unprivileged;
