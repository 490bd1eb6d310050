//! Turns what sexton found into text for people and stable JSON for programs.
//!
//! Pure: values in, bytes out into the writer that the caller hands over.

pub mod audit;
pub mod check;
pub mod diagnosis;
pub mod doctor;
pub mod explain;
pub mod facts;
pub mod fix;
pub mod junit;
pub mod record;
pub mod sarif;
pub mod text;
pub mod watching;
pub mod zombies;

mod gaps;
mod paint;

pub use paint::{Canvas, Paint};
