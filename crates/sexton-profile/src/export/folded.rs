//! Folded stacks: one line for each, as stackcollapse-perf and inferno write them.

use std::io::{self, Write};
use std::ops::Range;

use crate::flame::Tree;

/// Writes them, sorted. `difference` adds the count of the other window behind each, as
/// `difffolded` and inferno-diff-folded have it: the other window first, then this one.
pub fn write<W: Write>(out: &mut W, tree: &Tree, difference: bool) -> io::Result<()> {
    let lines = Lines::of(tree);
    for (stack, own) in lines.sorted() {
        out.write_all(stack)?;
        if difference {
            writeln!(out, " {} {}", own[1], own[0])?;
        } else {
            writeln!(out, " {}", own[0])?;
        }
    }
    Ok(())
}

/// The stacks of a tree, all in one text: there may be a million of them.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    list: Vec<(Range<usize>, [u64; 2])>,
}

impl Lines {
    fn of(tree: &Tree) -> Self {
        let mut lines = Self::default();
        let mut stack = Vec::new();
        // Depth first: a node, how many of its children were visited, and where its name ends.
        let mut path: Vec<(u32, usize, usize)> = vec![(0, 0, 0)];
        while let Some((at, n_visited, end)) = path.last_mut() {
            let node = &tree.nodes[*at as usize];
            stack.truncate(*end);
            if *n_visited == 0 && *at != 0 && node.own != [0, 0] {
                lines.add(&stack, node.own);
            }
            let Some(&child) = node.children.get(*n_visited) else {
                path.pop();
                continue;
            };
            *n_visited += 1;
            if *at != 0 {
                stack.push(b';');
            }
            stack.extend_from_slice(tree.name(&tree.nodes[child as usize]).as_bytes());
            path.push((child, 0, stack.len()));
        }
        lines
    }

    fn add(&mut self, stack: &[u8], own: [u64; 2]) {
        let start = self.text.len();
        self.text.extend_from_slice(stack);
        self.list.push((start..self.text.len(), own));
    }

    fn sorted(&self) -> Vec<(&[u8], [u64; 2])> {
        let lines = self.list.iter();
        let mut lines: Vec<_> = lines
            .map(|(place, own)| (&self.text[place.clone()], *own))
            .collect();
        lines.sort_unstable();
        lines
    }
}
