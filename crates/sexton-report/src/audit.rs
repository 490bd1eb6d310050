//! An audit of an image: for people, for programs, and as a gate.

mod bake;
mod diff;
mod gate;
mod json;
mod text;

pub use bake::{BakeFormat, BakeStep, bake};
pub use diff::{Change, diff, diff_json, diff_text};
pub use gate::{GateUnit, gate_json, gate_junit, gate_sarif, gate_text};
pub use json::json;
pub use text::{plan, text, why};
