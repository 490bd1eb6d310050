//! A flame graph as one HTML page: click to zoom, search by regular expression. Nothing is
//! loaded from anywhere.

use std::io::{self, Write};

use serde_json::json;
use sexton_model::stack::CodeKind;
use sexton_model::text::xml;

use super::script_json;
use crate::flame::Tree;

const PAGE: &str = include_str!("flame.html");

/// A node below this share of the whole is left out, with all that it called: it would be
/// a twentieth of a pixel.
const SMALLEST: u64 = 50_000;

/// Writes the page; with `difference`, functions that grew are red, those that shrank blue.
pub fn write<W: Write>(out: &mut W, title: &str, tree: &Tree, difference: bool) -> io::Result<()> {
    let smallest = tree.nodes[0].total.iter().sum::<u64>() / SMALLEST;
    // Level, name, kind, weight now and before, callers before what they call.
    let mut rows = Vec::new();
    let mut n_hidden = 0u64;
    let mut waiting = vec![(0u32, 0usize)];
    while let Some((at, level)) = waiting.pop() {
        let node = &tree.nodes[at as usize];
        if node.total.iter().sum::<u64>() < smallest {
            n_hidden += 1;
            continue;
        }
        let kind = match node.kind {
            CodeKind::Kernel => 1,
            CodeKind::User => 2,
            CodeKind::Unknown => 0,
        };
        rows.push(json!([
            level,
            node.name,
            kind,
            node.total[0],
            node.total[1]
        ]));
        waiting.extend(node.children.iter().rev().map(|&child| (child, level + 1)));
    }
    let data = json!({
        "names": tree.names,
        "nodes": rows,
        "difference": difference,
        "unit": tree.unit.name(),
        "hidden": n_hidden,
    });
    let page = PAGE.replace("{{title}}", &xml(title));
    let (before, after) = page.split_once("{{data}}").unwrap_or((&page, ""));
    out.write_all(before.as_bytes())?;
    out.write_all(script_json(&data).as_bytes())?;
    out.write_all(after.as_bytes())
}
