//! Writes what other viewers open.

pub mod firefox;
pub mod folded;
pub mod html;
pub mod otlp;
mod packing;
pub mod pprof;
pub mod pprof_window;
pub mod rows;
pub mod speedscope;
pub mod svg;

/// JSON that may stand inside a `script` element: no name can end it.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}
