//! The statistics of comparing nodes. Pure: values in, values out.

pub mod adjust;
pub mod bits;
pub mod fisher;
pub mod odds;
pub mod ranks;
pub mod special;
pub mod trend;
