//! What there is to look at.

use serde::Serialize;

use crate::app::App;
use crate::http::Response;
use crate::source::{Kind, Source};

#[derive(Serialize)]
struct SourcesView {
    sources: Vec<SourceView>,
    version: &'static str,
}

#[derive(Serialize)]
pub(crate) struct SourceView {
    pub(super) id: String,
    pub(super) name: String,
    kind: &'static str,
    pub(super) live: bool,
    pub(super) from: u64,
    pub(super) to: u64,
    node: Option<NodeView>,
    has_stacks: bool,
    has_times: bool,
    clock: &'static str,
    progress: f64,
    notes: Vec<String>,
}

#[derive(Serialize)]
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
        kind: match source.kind {
            Kind::Recording => "recording",
            Kind::Profile => "profile",
        },
        live: state.is_live,
        from: state.clock.us(from_ns),
        to: state.clock.us(to_ns),
        node,
        has_stacks: state.bundle.stacks_span().is_some(),
        has_times: source.has_times,
        clock: if state.clock.is_wall() {
            "wall"
        } else {
            "boot"
        },
        progress: state.progress(),
        notes: notes.cloned().collect(),
    }
}
