//! The vocabulary of sexton. Values only: no I/O, no threads, no clock.

pub mod census;
pub mod fact;
pub mod gap;
pub mod moment;
pub mod origin;
pub mod record;
pub mod sight;
pub mod subject;
pub mod text;
pub mod timeline;
