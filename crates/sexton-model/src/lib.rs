//! The vocabulary of sexton. Values only: no I/O, no threads, no clock.

pub mod audit;
pub mod census;
pub mod diagnosis;
pub mod fact;
pub mod family;
pub mod figures;
pub mod finding;
pub mod fix;
pub mod gap;
pub mod gate;
pub mod glob;
pub mod moment;
pub mod node;
mod old;
pub mod origin;
pub mod payload;
pub mod record;
pub mod sight;
pub mod stack;
pub mod subject;
pub mod text;
pub mod timeline;
pub mod unit_name;
pub mod wall;
pub mod wording;
