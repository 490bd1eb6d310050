//! Bundles: append, retain and replay records.
//!
//! A bundle is a folder:
//!
//! ```text
//! bundle.json                            whose records these are, what their times mean
//! lock                                   held by the one writer; has its pid
//! records/<sequence>-<from>-<to>.parquet sealed segments, oldest first
//! records/sealing.wal                    a closed segment, until it is sealed
//! records/current.wal                    the open segment
//! stacks/…                               samples of stacks: see `stacks.rs`
//! raw/…                                  files that rules read as they are
//! ```
//!
//! [`pack`] makes one file of it, `.tar.zst`, which [`Bundle::open`] takes as well.
//!
//! The sealed segments are one flat table (`SELECT * FROM 'records/*.parquet'`). The open
//! one is a log of checksummed batches: what [`BundleWriter::sync`] has acknowledged
//! survives a kill at any byte. What is lost, damaged or unknown is a gap among the
//! records, never an error of the reader.

mod bundle;
mod checked;
mod columns;
mod crc;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod keep;
mod ledger;
mod lock;
mod meta;
mod outside;
mod pack;
mod place;
mod ring;
mod row;
mod seal;
mod sealed;
mod stacks;
mod stream;
mod thinning;
mod thrift;
mod wal;
mod writer;

pub use bundle::{Bundle, Dropped};
pub use error::StoreError;
pub use keep::{Kept, keep_window};
pub use meta::{FORMAT, Limits, Node};
pub use outside::{guard, open_outside};
pub use pack::{is_packed, pack, unpack};
pub use place::{Place, PlaceFile};
pub use ring::{Boot, Held, Ring};
pub use stacks::{CELL_NS, StackChunk, StackPiece, StackStream, Tick, TickCell};
pub use stream::Stream;
pub use writer::{Acknowledged, BundleWriter, Summary};

/// Who speaks of what the store itself could not keep or read.
pub const SENSOR: &str = "store";
