//! The functions and the stacks that took most.

use ahash::AHashMap;
use sexton_model::stack::{NameId, StackId, StackTables, WAKER};

use crate::flame::{Count, StackCounts};
use crate::names::{self, Suffixes};

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopFunction {
    /// Its name, as in a flame graph.
    pub name: String,
    /// The file it is in, where that is known.
    pub module: String,
    /// What ran in it, or waited in it.
    pub own: Count,
    /// What ran in it or in what it called.
    pub total: Count,
}

impl TopFunction {
    /// Whether it is no function: it says who woke threads that waited.
    pub fn is_waker(&self) -> bool {
        self.module == WAKER
    }
}

/// One stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopStack {
    /// The program.
    pub comm: String,
    /// Functions, innermost first.
    pub frames: Vec<String>,
    /// How much.
    pub count: Count,
}

/// Functions by what ran in them itself, most first.
pub fn functions(counts: &StackCounts, tables: &StackTables) -> Vec<TopFunction> {
    let mut by_name: AHashMap<(String, String), (Count, Count)> = AHashMap::new();
    let mut stacks: AHashMap<StackId, Count> = AHashMap::new();
    for (_, stack, count) in counts.iter() {
        add(stacks.entry(stack).or_default(), count);
    }
    let mut frame_keys: AHashMap<u32, (String, String)> = AHashMap::new();
    let mut seen: Vec<&(String, String)> = Vec::new();
    for stack in stacks.keys() {
        for frame in tables.frames_of(*stack) {
            frame_keys
                .entry(frame.0)
                .or_insert_with(|| key(tables, frame));
        }
    }
    for (stack, count) in stacks {
        seen.clear();
        let mut is_own = true;
        for frame in tables.frames_of(stack) {
            let Some(key) = frame_keys.get(&frame.0) else {
                continue;
            };
            let entry = match by_name.get_mut(key) {
                Some(entry) => entry,
                None => by_name.entry(key.clone()).or_default(),
            };
            // Who woke a thread is no place where it waited.
            if is_own && key.1 != WAKER {
                add(&mut entry.0, count);
                is_own = false;
            }
            // A function that calls itself counts once for each sample.
            if !seen.contains(&key) {
                add(&mut entry.1, count);
                seen.push(key);
            }
        }
    }
    let function = |((name, module), (own, total))| TopFunction {
        name,
        module,
        own,
        total,
    };
    let mut functions: Vec<TopFunction> = by_name.into_iter().map(function).collect();
    functions.sort_by(|a, b| {
        let by_weight = |f: &TopFunction| (f.own.weight, f.total.weight);
        by_weight(b)
            .cmp(&by_weight(a))
            .then_with(|| a.name.cmp(&b.name))
    });
    functions
}

fn key(tables: &StackTables, id: sexton_model::stack::FrameId) -> (String, String) {
    let Some(frame) = tables.frame(id) else {
        return (names::UNKNOWN.to_owned(), String::new());
    };
    let module = frame.module.map_or("", |name| tables.name(name));
    (
        names::of_frame(tables, frame, "", Suffixes::default()),
        module.to_owned(),
    )
}

/// Stacks of programs, most first, at most `n`.
pub fn stacks(counts: &StackCounts, tables: &StackTables, n: usize) -> Vec<TopStack> {
    // Addresses differ where functions do not.
    let mut by_names: AHashMap<(String, Vec<String>), Count> = AHashMap::new();
    for (comm, stack, count) in counts.iter() {
        let frames = tables.frames_of(stack).map(|frame| key(tables, frame).0);
        let key = (tables.name(comm).to_owned(), frames.collect());
        add(by_names.entry(key).or_default(), count);
    }
    let stack = |((comm, frames), count)| TopStack {
        comm,
        frames,
        count,
    };
    let mut stacks: Vec<TopStack> = by_names.into_iter().map(stack).collect();
    stacks.sort_by(|a, b| {
        let order = |stack: &TopStack| (stack.comm.clone(), stack.frames.clone());
        b.count
            .weight
            .cmp(&a.count.weight)
            .then_with(|| order(a).cmp(&order(b)))
    });
    stacks.truncate(n);
    stacks
}

/// Which events samples have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Events {
    first: Option<NameId>,
    are_several: bool,
}

impl Events {
    pub(crate) fn add(&mut self, event: NameId) {
        self.are_several |= *self.first.get_or_insert(event) != event;
    }

    pub(crate) fn are_several(self) -> bool {
        self.are_several
    }

    /// The event, if it is the only one.
    pub(crate) fn only(self) -> Option<NameId> {
        self.first.filter(|_| !self.are_several)
    }
}

pub(crate) fn add(to: &mut Count, more: Count) {
    to.samples += more.samples;
    to.weight = to.weight.saturating_add(more.weight);
}
