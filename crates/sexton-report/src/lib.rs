//! Turns what sexton found into text for people and stable JSON for programs.
//!
//! Pure: values in, bytes out into the writer that the caller hands over.

pub mod doctor;
pub mod record;
pub mod text;
pub mod zombies;

mod gaps;
