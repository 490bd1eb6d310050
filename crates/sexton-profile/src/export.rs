//! Writes what other viewers open.

pub mod firefox;
pub mod folded;
pub mod html;
mod packing;
pub mod pprof;
pub mod rows;
pub mod speedscope;
pub mod svg;

use std::fmt::Write as _;

/// Text for XML and HTML, in elements and in quoted attributes.
pub(crate) fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML knows no other control characters, however they are written.
            c if c.is_control() && !matches!(c, '\n' | '\t') => {
                let _ = write!(escaped, "\\u{:04x}", c as u32);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON that may stand inside a `script` element: no name can end it.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}
