//! What findings say in the same words: figures, and commands for units.

pub(crate) mod figures;
pub(crate) mod process;
pub(crate) mod unit_name;
