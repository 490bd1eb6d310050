//! Judging while a node is recorded.
//!
//! [`Stepper`] takes records as they come and judges them at regular moments, with the same
//! code that judges a bundle. What it remembers is bounded: a [`Window`] keeps records for as
//! long as the rules that read them need ([`reach`]), and the last word on what is said once
//! (settings of a unit, the node itself). [`Lives`] makes openings and ends of what successive
//! verdicts say.
//!
//! A replay of the recorded records through a stepper gives the same lives: steps are taken
//! at multiples of their distance on the clock of the records, and a record belongs to a step
//! by its own moment, not by when it came.

mod lives;
pub mod reach;
mod stepper;
mod window;

pub use lives::{Change, Life, Lives, Turn};
pub use stepper::{EVERY, LAG, Step, Stepper, replay};
pub use window::Window;
