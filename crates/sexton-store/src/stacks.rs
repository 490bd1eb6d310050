//! Samples of stacks in a bundle.
//!
//! ```text
//! stacks/samples-<sequence>-<from>-<to>.parquet  one row for each sample
//! stacks/stacks-<sequence>-<from>-<to>.parquet   a stack: its innermost frame and its caller
//! stacks/frames-<sequence>-<from>-<to>.parquet   a frame: function, file, address
//! stacks/current.wal                             the open segment
//! ```
//!
//! A segment has its own stacks and frames, so that dropping one costs no other; `segment`
//! is a column of each table, to join by. The file of samples gets its name last, and
//! loses it first: without it there is no segment. Its footer also holds how many samples fell
//! into each 20 ms of each core, for heat maps.

mod base64;
mod cells;
mod intern;
mod item;
mod log;
mod names;
mod order;
mod seal;
mod sealed;
mod stream;
mod table;
mod texts;
mod ticks;
mod writer;

use std::sync::Arc;

use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::stack::{StackSample, StackTables};

pub use cells::{CELL_NS, TickCell};
pub(crate) use log::{FILE as LOG_FILE, StackLog};
pub(crate) use names::{FOLDER, StackSegment, TABLES};
pub use stream::StackStream;
pub use ticks::Tick;
pub(crate) use ticks::{visit as visit_ticks, visit_cells};
pub(crate) use writer::StackWriter;

/// Samples that lie together, and what they refer to.
#[derive(Debug, Clone)]
pub struct StackChunk {
    /// The segment they are from. Chunks of one segment share their numbers: tables of a
    /// later one only add names.
    pub segment: u64,
    /// What the samples refer to.
    pub tables: Arc<StackTables>,
    /// The samples, in the order of time.
    pub samples: Vec<StackSample>,
}

/// What a bundle holds of stacks at some moment.
#[derive(Debug, Clone)]
pub enum StackPiece {
    /// Samples.
    Chunk(StackChunk),
    /// Samples that should be there, from a moment on, and cannot be read.
    Gap(Moment, Gap),
}
