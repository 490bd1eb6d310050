//! The terminal surface of sexton: watch a node, or step through a recording.
//!
//! [`View`] holds what is shown and is fed with records; [`render`] draws it; [`action`]
//! turns a key into an [`Action`] for [`View::act`]. None of these reads a clock or a
//! terminal. [`run`] and [`look`] put them on the real one.

mod figures;
mod history;
mod keys;
mod names;
mod panels;
mod render;
mod terminal;
mod view;
mod words;

pub use keys::{Action, action};
pub use panels::Panel;
pub use render::render;
pub use terminal::{Source, look, run};
pub use view::{Flow, View};
