//! Folded stacks: one line for each, as stackcollapse-perf and inferno write them.

use std::io::{self, Write};

use crate::flame::Tree;

/// Writes them, sorted. `difference` adds the count of the other window behind each, as
/// `difffolded` and inferno-diff-folded have it: the other window first, then this one.
pub fn write<W: Write>(out: &mut W, tree: &Tree, difference: bool) -> io::Result<()> {
    let mut lines = Vec::new();
    let mut path: Vec<u32> = vec![0];
    // Depth first: how many children of each node on the path were visited.
    let mut visited: Vec<usize> = vec![0];
    while let (Some(&at), Some(n)) = (path.last(), visited.last_mut()) {
        let node = &tree.nodes[at as usize];
        if *n == 0 && at != 0 && node.own != [0, 0] {
            lines.push(line(tree, &path, node.own, difference));
        }
        if let Some(&child) = node.children.get(*n) {
            *n += 1;
            path.push(child);
            visited.push(0);
        } else {
            path.pop();
            visited.pop();
        }
    }
    lines.sort_unstable();
    for (stack, counts) in lines {
        writeln!(out, "{stack} {counts}")?;
    }
    Ok(())
}

fn line(tree: &Tree, path: &[u32], own: [u64; 2], difference: bool) -> (String, String) {
    let names = path[1..]
        .iter()
        .map(|&at| tree.name(&tree.nodes[at as usize]));
    let counts = if difference {
        format!("{} {}", own[1], own[0])
    } else {
        own[0].to_string()
    };
    (names.collect::<Vec<_>>().join(";"), counts)
}
