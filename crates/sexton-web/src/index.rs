//! What a recording says, put in order for a time line: read once, asked many times.
//!
//! Lanes of values are pyramids (`pyramid.rs`), lanes of events are lists (`events.rs`).
//! `table.rs` says which facts make which lane; `builder.rs` reads records into them.

mod builder;
mod census;
mod cores;
mod events;
mod gaps;
mod lanes;
mod pyramid;
mod table;
mod words;

pub(crate) use builder::Index;
pub(crate) use census::Census;
pub(crate) use events::{EventList, Happening, Told};
pub(crate) use gaps::BlindSpan;
pub(crate) use lanes::{Content, Lane};
pub(crate) use table::{Group, LaneKind, LaneUnit, facts};
