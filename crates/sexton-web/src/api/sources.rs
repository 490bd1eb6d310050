//! What there is to look at.

use schemars::JsonSchema;
use serde::Serialize;

use super::Time;
use crate::app::App;
use crate::http::Response;
use crate::source::{Kind, Source};

/// What there is to look at.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sources")]
pub(super) struct SourcesView {
    sources: Vec<SourceView>,
    /// The version of sexton.
    version: &'static str,
    /// Whether an agent records what is looked at: `/api/v1/agent` says how it is.
    agent: bool,
}

/// What times count from.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ClockKind {
    Wall,
    Boot,
}

/// Something to look at: a recording of a node, or a profile that was dropped.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Source")]
pub(crate) struct SourceView {
    #[schemars(regex(pattern = "^[a-z0-9]{1,32}$"))]
    pub(super) id: String,
    pub(super) name: String,
    kind: Kind,
    /// Whether it still grows: ask again for its `to`.
    pub(super) live: bool,
    #[schemars(with = "Time")]
    pub(super) from: u64,
    #[schemars(with = "Time")]
    pub(super) to: u64,
    node: Option<NodeView>,
    /// Whether heat maps and flame graphs can be drawn.
    has_stacks: bool,
    /// Whether its samples have times; folded stacks have none, and only a flame graph of all.
    has_times: bool,
    clock: ClockKind,
    /// How much of it was read for the time line; below 1, ask again for tiles that have a gap.
    #[schemars(range(min = 0, max = 1))]
    progress: f64,
    /// What could not be read of it, in sentences.
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SourceNode")]
struct NodeView {
    name: String,
    kernel: String,
    boot_id: String,
}

/// All sources.
pub(crate) fn sources(app: &App) -> Response {
    let sources = app.sources();
    Response::json(&SourcesView {
        sources: sources.iter().map(|source| source_view(source)).collect(),
        version: app.options.version,
        agent: app.options.agent.is_some(),
    })
}

/// One source.
pub(crate) fn source_view(source: &Source) -> SourceView {
    let state = source.state();
    let (from_ns, to_ns) = state.span_ns();
    let node = state.bundle.node();
    let shown = |text: &str| sexton_model::text::escape(text.as_bytes());
    let node = (source.kind == Kind::Recording).then(|| NodeView {
        name: shown(&node.name),
        kernel: shown(&node.kernel),
        boot_id: shown(&node.boot_id),
    });
    let notes = source.notes.iter().chain(&state.trouble);
    SourceView {
        id: source.id.clone(),
        name: source.name.clone(),
        kind: source.kind,
        live: state.is_live,
        from: state.clock.us(from_ns),
        to: state.clock.us(to_ns),
        node,
        has_stacks: state.bundle.stacks_span().is_some(),
        has_times: source.has_times,
        clock: match state.clock.is_wall() {
            true => ClockKind::Wall,
            false => ClockKind::Boot,
        },
        progress: state.progress(),
        notes: notes.cloned().collect(),
    }
}
