//! Where the time went, as a tree: the program, then what called what.

use ahash::AHashMap;
use sexton_model::stack::{CodeKind, FrameId, NameId, StackId, StackSample, StackTables};

use crate::filter::{Filter, Matcher};
use crate::import::Sink;
use crate::names::{self, Suffixes};
use crate::tables::MAX_ENTRIES;
use crate::top::{self, Events};
use crate::walk::Walk;
use crate::weight::{Unit, Weight};

/// How much a stack was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Samples.
    pub samples: u64,
    /// What they stand for, in the event's unit.
    pub weight: u64,
}

impl Count {
    /// Weighs samples if the weights have several units.
    pub(crate) fn of_one_unit(self, has_several: bool) -> Self {
        Self {
            weight: if has_several {
                self.samples
            } else {
                self.weight
            },
            ..self
        }
    }
}

/// Counts stacks that a filter lets pass.
#[derive(Debug)]
pub struct StackCounts {
    matcher: Matcher,
    /// By the number of a stack: the first thread name it was seen with, and how much.
    first: Vec<(NameId, Count)>,
    /// What was seen with another name, or without a stack.
    others: AHashMap<(NameId, StackId), Count>,
    total: Count,
    weight: Weight,
    events: Events,
}

impl StackCounts {
    /// Nothing counted yet.
    pub fn new(filter: Filter) -> Self {
        Self {
            matcher: Matcher::new(filter),
            first: Vec::new(),
            others: AHashMap::new(),
            total: Count::default(),
            weight: Weight::default(),
            events: Events::default(),
        }
    }

    /// The same, adding up this.
    pub fn weighed(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    /// Each thread name and stack, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, StackId, Count)> {
        let is_mixed = self.events.are_several();
        let numbers = (0..).map(StackId);
        let first = numbers
            .zip(&self.first)
            .filter(|(_, first)| first.1.samples > 0);
        let first = first.map(|(stack, (comm, count))| (*comm, stack, *count));
        let others = self.others.iter();
        let all = first.chain(others.map(|((comm, stack), count)| (*comm, *stack, *count)));
        all.map(move |(comm, stack, count)| (comm, stack, count.of_one_unit(is_mixed)))
    }

    /// The count of a stack. Most are seen with one thread name only, so that no hash is
    /// needed to find it.
    fn count_of(&mut self, comm: NameId, stack: StackId) -> &mut Count {
        let at = stack.0 as usize;
        if stack != StackId::EMPTY && at < MAX_ENTRIES {
            if self.first.len() <= at {
                self.first.resize(at + 1, (comm, Count::default()));
            }
            let first = &mut self.first[at];
            if first.1.samples == 0 {
                first.0 = comm;
            }
            if first.0 == comm {
                return &mut self.first[at].1;
            }
        }
        self.others.entry((comm, stack)).or_default()
    }

    /// All samples together. Weights of several events do not add up: then samples are
    /// weighed, here and in [`Self::iter`].
    pub fn total(&self) -> Count {
        self.total.of_one_unit(self.events.are_several())
    }

    /// The event of all samples that were counted, where they have one.
    pub fn event(&self) -> Option<NameId> {
        self.events.only()
    }

    /// What sums count.
    pub fn unit(&self, tables: &StackTables) -> Unit {
        Unit::of(self.total, self.events.only(), tables)
    }
}

impl Sink for StackCounts {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        if !self.matcher.accepts(sample, tables) {
            return;
        }
        self.events.add(sample.event);
        let one = self.weight.of(sample);
        top::add(self.count_of(sample.comm, sample.stack), one);
        top::add(&mut self.total, one);
    }

    fn wants_addresses(&self) -> bool {
        false
    }

    fn matcher(&self) -> Option<&Matcher> {
        Some(&self.matcher)
    }

    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        Some(&mut self.matcher)
    }
}

/// A function in its place, in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is called: a number in [`Tree::names`].
    pub name: u32,
    /// Whose code it is.
    pub kind: CodeKind,
    /// Its weight and that of all it called: now, and in the window compared with.
    pub total: [u64; 2],
    /// Its own weight.
    pub own: [u64; 2],
    /// What it called, as numbers of nodes, by name.
    pub children: Vec<u32>,
}

/// A tree of functions. The first node is the root, which stands for everything.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Nodes; a caller is always before what it calls.
    pub nodes: Vec<Node>,
    /// Names of nodes.
    pub names: Vec<String>,
    /// What weights count.
    pub unit: Unit,
}

/// How a tree grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// From programs to what they called.
    #[default]
    Calls,
    /// From the innermost functions to who called them, and programs last.
    Inverted,
}

/// Deeper stacks are cut in an inverted tree, where no two share the beginning of a path. The
/// kernel records 127 frames unless it is told otherwise.
const MAX_INVERTED_DEPTH: usize = 2048;

/// Builds a tree.
struct Builder<'a> {
    tables: &'a StackTables,
    suffixes: Suffixes,
    tree: Tree,
    name_numbers: AHashMap<String, u32>,
    frame_names: AHashMap<(u32, bool), u32>,
    by_name: AHashMap<(u32, u32), u32>,
}

impl Tree {
    /// The tree of what was counted.
    pub fn of(counts: &StackCounts, tables: &StackTables, suffixes: Suffixes) -> Self {
        Self::build(&[counts], tables, suffixes, Order::Calls)
    }

    /// The same, from the innermost functions to their callers.
    pub fn inverted(counts: &StackCounts, tables: &StackTables, suffixes: Suffixes) -> Self {
        Self::build(&[counts], tables, suffixes, Order::Inverted)
    }

    /// The tree of two windows: `now`, compared with `before`.
    pub fn difference(
        now: &StackCounts,
        before: &StackCounts,
        tables: &StackTables,
        suffixes: Suffixes,
    ) -> Self {
        Self::build(&[now, before], tables, suffixes, Order::Calls)
    }

    /// The tree of one or two counts, grown this way.
    pub fn build(
        sides: &[&StackCounts],
        tables: &StackTables,
        suffixes: Suffixes,
        order: Order,
    ) -> Self {
        let mut builder = Builder::new(tables, suffixes);
        for (side, counts) in sides.iter().enumerate() {
            match order {
                Order::Calls => builder.count(side, counts),
                Order::Inverted => builder.count_inverted(side, counts),
            }
        }
        let unit = sides.first().map(|counts| counts.unit(tables));
        builder.tree.unit = unit.unwrap_or_default();
        builder.finish()
    }

    /// The name of a node.
    pub fn name(&self, node: &Node) -> &str {
        self.names.get(node.name as usize).map_or("", |name| name)
    }

    /// How many levels it has, the root's included.
    pub fn depth(&self) -> usize {
        let mut depths = vec![1usize; self.nodes.len()];
        let mut deepest = 1;
        for (at, node) in self.nodes.iter().enumerate() {
            for &child in &node.children {
                depths[child as usize] = depths[at] + 1;
                deepest = deepest.max(depths[at] + 1);
            }
        }
        deepest
    }
}

impl<'a> Builder<'a> {
    fn new(tables: &'a StackTables, suffixes: Suffixes) -> Self {
        let mut builder = Self {
            tables,
            suffixes,
            tree: Tree {
                nodes: Vec::new(),
                names: Vec::new(),
                unit: Unit::default(),
            },
            name_numbers: AHashMap::new(),
            frame_names: AHashMap::new(),
            by_name: AHashMap::new(),
        };
        let all = builder.name("all".to_owned());
        builder.tree.nodes.push(new_node(all, CodeKind::Unknown));
        builder
    }

    fn name(&mut self, name: String) -> u32 {
        if let Some(&number) = self.name_numbers.get(&name) {
            return number;
        }
        let number = u32::try_from(self.tree.names.len()).unwrap_or(u32::MAX);
        self.tree.names.push(name.clone());
        self.name_numbers.insert(name, number);
        number
    }

    /// The nodes of all that was counted on one side.
    fn count(&mut self, side: usize, counts: &StackCounts) {
        let mut list: Vec<_> = counts.iter().collect();
        // By program, because a stack has a node below each.
        list.sort_unstable_by_key(|(comm, stack, _)| (*comm, *stack));
        let mut stacks = Walk::default();
        for of_program in list.chunk_by(|a, b| a.0 == b.0) {
            stacks.forget();
            let comm = self.tables.name(of_program[0].0);
            let is_java = comm.starts_with("java");
            let name = self.name(comm.replace([' ', ';'], "_"));
            let program = self.child(0, name, CodeKind::Unknown);
            for (_, stack, count) in of_program {
                let node = stacks.walk(self.tables, *stack, program, |caller, frame| {
                    self.called(caller, frame, is_java)
                });
                self.tree.nodes[node as usize].own[side] += count.weight;
            }
        }
    }

    /// The same, innermost functions first.
    fn count_inverted(&mut self, side: usize, counts: &StackCounts) {
        let mut list: Vec<_> = counts.iter().collect();
        list.sort_unstable_by_key(|(comm, stack, _)| (*comm, *stack));
        for (comm, stack, count) in list {
            let comm = self.tables.name(comm);
            let is_java = comm.starts_with("java");
            let mut node = 0;
            for frame in self.tables.frames_of(stack).take(MAX_INVERTED_DEPTH) {
                if self.tree.nodes.len() < MAX_ENTRIES {
                    node = self.called(node, frame, is_java);
                }
            }
            let name = self.name(comm.replace([' ', ';'], "_"));
            node = self.child(node, name, CodeKind::Unknown);
            self.tree.nodes[node as usize].own[side] += count.weight;
        }
    }

    /// The node of a frame that `caller` called.
    fn called(&mut self, caller: u32, id: FrameId, is_java: bool) -> u32 {
        let Some(frame) = self.tables.frame(id) else {
            return caller;
        };
        let name = match self.frame_names.get(&(id.0, is_java)) {
            Some(&name) => name,
            None => {
                let comm = if is_java { "java" } else { "" };
                let name = self.name(names::of_frame(self.tables, frame, comm, self.suffixes));
                self.frame_names.insert((id.0, is_java), name);
                name
            }
        };
        self.child(caller, name, frame.kind)
    }

    fn child(&mut self, parent: u32, name: u32, kind: CodeKind) -> u32 {
        if let Some(&child) = self.by_name.get(&(parent, name)) {
            return child;
        }
        let child = u32::try_from(self.tree.nodes.len()).unwrap_or(u32::MAX);
        self.tree.nodes.push(new_node(name, kind));
        self.tree.nodes[parent as usize].children.push(child);
        self.by_name.insert((parent, name), child);
        child
    }

    /// Adds up, and sorts what each function called by name.
    fn finish(self) -> Tree {
        let mut tree = self.tree;
        for at in (0..tree.nodes.len()).rev() {
            let children = std::mem::take(&mut tree.nodes[at].children);
            let mut total = tree.nodes[at].own;
            for &child in &children {
                let of_child = tree.nodes[child as usize].total;
                total = [total[0] + of_child[0], total[1] + of_child[1]];
            }
            let mut children = children;
            children.sort_by_key(|&child| {
                let name = tree.nodes[child as usize].name;
                tree.names[name as usize].as_str()
            });
            tree.nodes[at].total = total;
            tree.nodes[at].children = children;
        }
        tree
    }
}

fn new_node(name: u32, kind: CodeKind) -> Node {
    Node {
        name,
        kind,
        total: [0; 2],
        own: [0; 2],
        children: Vec::new(),
    }
}
