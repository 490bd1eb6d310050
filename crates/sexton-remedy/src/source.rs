//! Stops what makes the trouble: a unit with all that triggers it, or a container.

mod container;
mod unit;

pub use container::Container;
pub use unit::{How, Risk, Unit};

pub(crate) use container::restore as restore_container;
pub(crate) use unit::{reload as reload_units, restore as restore_unit, start_again, start_order};
