//! A flame graph for a terminal: the tree, with shares, without what is small.

use std::fmt::Write;

use crate::export::svg::percent;
use crate::flame::Tree;

/// Deeper levels are not indented further.
const MAX_INDENT: usize = 40;

/// Draws the tree down to functions with this share in percent. Functions that call only
/// one other are followed on the same level, so that lines stay short.
pub fn text(tree: &Tree, at_least: f64, difference: bool) -> String {
    let mut text = String::new();
    let all = tree.nodes[0].total;
    let shares = |total: [u64; 2]| (percent(total[0], all[0]), percent(total[1], all[1]));
    let mut waiting: Vec<(u32, usize)> = vec![(0, 0)];
    while let Some((at, level)) = waiting.pop() {
        let node = &tree.nodes[at as usize];
        let (now, before) = shares(node.total);
        let indent = level.min(MAX_INDENT);
        let change = if difference {
            format!(" {:>+7.2}%", now - before)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "{now:>6.2}%{change} {:indent$}{}",
            "",
            tree.name(node)
        );
        let is_large = |child: &u32| {
            let (now, before) = shares(tree.nodes[*child as usize].total);
            now >= at_least || (difference && before >= at_least)
        };
        let mut children: Vec<u32> = node.children.iter().copied().filter(is_large).collect();
        children.sort_by_key(|&child| tree.nodes[child as usize].total[0]);
        let is_chain =
            children.len() == 1 && tree.nodes[children[0] as usize].total == node.total && at != 0;
        let next = if is_chain { level } else { level + 1 };
        waiting.extend(children.into_iter().map(|child| (child, next)));
    }
    text
}
