//! What a recording says, put in order for a time line: read once, asked many times.
//!
//! Lanes of values are pyramids (`pyramid.rs`), lanes of events are lists (`events.rs`).
//! Facts say themselves which lane shows them (`fact.show`, put in order by `table.rs`);
//! `builder.rs` reads records into lanes.

mod builder;
mod census;
mod cores;
mod events;
mod gaps;
mod lanes;
mod pyramid;
mod table;

pub(crate) use builder::Index;
pub(crate) use census::Census;
pub(crate) use events::{EventList, Happening, Told};
pub(crate) use gaps::BlindSpan;
pub(crate) use lanes::{Content, Lane};
pub(crate) use table::{LaneKind, LaneUnit, facts};
