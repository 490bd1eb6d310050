//! `sexton diagnose`: the judgement of a node.

mod drawing;
mod html;
mod json;
mod remedies;
mod screen;
mod text;
mod words;

use sexton_model::diagnosis::Diagnosis;
use sexton_model::node::Node;
use sexton_model::wall::WallClock;

pub use html::html;
pub use json::{DiagnosisView, SubjectView, json};
pub use screen::screen;
pub use text::text;

/// A judgement, whom it is about, and what its moments mean.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The node.
    pub node: Node,
    /// What the wall clock said.
    pub clock: WallClock,
    /// The judgement.
    pub diagnosis: Diagnosis,
}
