//! What the terminal shows.

mod keys;
mod screens;
mod sizes;
mod story;
