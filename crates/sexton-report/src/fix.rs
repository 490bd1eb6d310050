//! `sexton fix`: the plan, and what it came to.

mod json;
mod text;

pub use json::{plan_json, report_json};
pub use text::{plan, report};
