//! Who called a function, and what it called.

use ahash::AHashMap;
use regex::Regex;
use sexton_model::stack::{FrameId, StackTables};

use crate::flame::{Count, StackCounts};
use crate::names::{self, Suffixes};
use crate::top;

/// What a function itself did, among what it called.
pub const ITSELF: &str = "(self)";

/// Which way to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Who called it: the function next to it, or the thread's name where it is the outermost.
    Callers,
    /// What it called: the function next to it, or [`ITSELF`] where it is the innermost.
    Callees,
}

/// The functions next to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// The functions that were asked about, by name: those called so, or, where none is, those
    /// that the text matches as a regular expression.
    pub functions: Vec<String>,
    /// What ran in them or in what they called.
    pub total: Count,
    /// Those next to them, most first. A stack in which the function calls itself counts for
    /// each of its neighbours, so that these may add up to more than the total.
    pub list: Vec<(String, Count)>,
}

/// The neighbours of a function; `None` when no function is called so.
pub fn neighbours(
    counts: &StackCounts,
    tables: &StackTables,
    function: &str,
    side: Side,
) -> Option<Neighbours> {
    let mut names: AHashMap<FrameId, String> = AHashMap::new();
    for (_, stack, _) in counts.iter() {
        for frame in tables.frames_of(stack) {
            names.entry(frame).or_insert_with(|| name(tables, frame));
        }
    }
    let exact = |name: &str| name == function;
    let pattern = Regex::new(function).ok();
    let matching = |name: &str| pattern.as_ref().is_some_and(|regex| regex.is_match(name));
    let is_exact = names.values().any(|name| exact(name));
    let is_asked = |name: &str| {
        if is_exact {
            exact(name)
        } else {
            matching(name)
        }
    };
    let mut functions: Vec<String> = names.values().filter(|n| is_asked(n)).cloned().collect();
    functions.sort_unstable();
    functions.dedup();
    if functions.is_empty() {
        return None;
    }
    let mut total = Count::default();
    let mut by_name: AHashMap<&str, Count> = AHashMap::new();
    let mut seen: Vec<&str> = Vec::new();
    for (comm, stack, count) in counts.iter() {
        seen.clear();
        let frames = tables
            .frames_of(stack)
            .filter_map(|frame| names.get(&frame));
        let frames: Vec<&str> = frames.map(String::as_str).collect();
        for (at, _) in frames.iter().enumerate().filter(|(_, name)| is_asked(name)) {
            let next = match side {
                Side::Callers => frames.get(at + 1).copied().unwrap_or(tables.name(comm)),
                Side::Callees => at.checked_sub(1).map_or(ITSELF, |below| frames[below]),
            };
            if !seen.contains(&next) {
                seen.push(next);
                top::add(by_name.entry(next).or_default(), count);
            }
        }
        if !seen.is_empty() {
            top::add(&mut total, count);
        }
    }
    let mut list: Vec<(String, Count)> = by_name
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    list.sort_by(|a, b| b.1.weight.cmp(&a.1.weight).then_with(|| a.0.cmp(&b.0)));
    Some(Neighbours {
        functions,
        total,
        list,
    })
}

fn name(tables: &StackTables, frame: FrameId) -> String {
    let named = |frame| names::of_frame(tables, frame, "", Suffixes::default());
    tables
        .frame(frame)
        .map_or_else(|| names::UNKNOWN.to_owned(), named)
}
