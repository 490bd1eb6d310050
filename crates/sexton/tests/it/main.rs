//! The real binary, as users run it.

mod agent;
mod bundle;
mod captured;
mod check;
mod codes;
mod command;
mod contract;
mod diagnose;
mod generate;
mod golden;
mod help;
mod image;
mod invented;
mod matrix;
mod npd;
mod profile;
mod readme;
mod record;
mod screen;
mod serve;
mod signatures;
mod stepping;
mod terminal;
mod unprivileged;
mod viewers;
mod watch;
