//! A flame graph as SVG: each function as wide as its share, callers below.

use std::io::{self, Write};

use sexton_model::stack::CodeKind;
use sexton_model::text::xml;

use crate::flame::{Node, Tree};

const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
const TOP: usize = 40;

/// Narrower boxes cannot be seen and are left out, with all above them.
const NARROWEST: f64 = 0.1;

/// A letter takes about this much.
const LETTER: f64 = 7.0;

/// Writes the graph; with `difference`, functions that grew are red, those that shrank blue.
pub fn write<W: Write>(out: &mut W, title: &str, tree: &Tree, difference: bool) -> io::Result<()> {
    let height = TOP + tree.depth() * ROW + 10;
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="12"><rect width="100%" height="100%" fill="#f8f8f8"/><text x="{}" y="24" text-anchor="middle" font-size="16">{}</text>"##,
        WIDTH / 2.0,
        xml(title),
    )?;
    let painter = Painter { tree, difference };
    let all = weight(&tree.nodes[0]);
    // Node, left edge and level; without recursion, since stacks may be deep.
    let mut boxes = vec![(0u32, 0.0, 0usize)];
    while let Some((at, x, level)) = boxes.pop() {
        let node = &tree.nodes[at as usize];
        let width = weight(node) / all.max(1.0) * WIDTH;
        if width < NARROWEST {
            continue;
        }
        painter.draw(out, node, x, height - 10 - (level + 1) * ROW, width)?;
        let mut left = x;
        for &child in &node.children {
            boxes.push((child, left, level + 1));
            left += weight(&tree.nodes[child as usize]) / all.max(1.0) * WIDTH;
        }
    }
    writeln!(out, "</svg>")
}

struct Painter<'a> {
    tree: &'a Tree,
    difference: bool,
}

impl Painter<'_> {
    fn draw<W: Write>(
        &self,
        out: &mut W,
        node: &Node,
        x: f64,
        y: usize,
        width: f64,
    ) -> io::Result<()> {
        let name = self.tree.name(node);
        let [r, g, b] = if self.difference {
            difference_color(self.tree, node)
        } else {
            color(name, node.kind)
        };
        writeln!(
            out,
            r##"<g><title>{} ({})</title><rect x="{x:.2}" y="{y}" width="{width:.2}" height="{}" fill="#{r:02x}{g:02x}{b:02x}" stroke="#f8f8f8" stroke-width="0.5"/>{}</g>"##,
            xml(name),
            self.numbers(node),
            ROW - 1,
            label(name, x, y, width),
        )
    }

    fn numbers(&self, node: &Node) -> String {
        let [now, before] = node.total;
        let [all, all_before] = self.tree.nodes[0].total;
        let share = percent(now, all);
        if self.difference {
            let old = percent(before, all_before);
            format!("{share:.2}%, before {old:.2}%, {:+.2}%", share - old)
        } else {
            format!("{}, {share:.2}%", self.tree.unit.shown(now))
        }
    }
}

/// Boxes are as wide as this window's share, in a difference too: what is gone has none, and
/// shows only where the windows change places.
fn weight(node: &Node) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "widths of boxes")]
    let weight = node.total[0] as f64;
    weight
}

/// The name, as much of it as fits.
fn label(name: &str, x: f64, y: usize, width: f64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of letters"
    )]
    let fits = ((width - 6.0) / LETTER).max(0.0) as usize;
    if fits < 3 {
        return String::new();
    }
    let mut text: String = name.chars().take(fits).collect();
    if text.len() < name.len() {
        text = text.chars().take(fits - 2).collect::<String>() + "..";
    }
    format!(
        r##"<text x="{:.2}" y="{}">{}</text>"##,
        x + 3.0,
        y + 12,
        xml(&text)
    )
}

/// A share in percent; 0 of nothing.
pub(crate) fn percent(part: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
    let (part, all) = (part as f64, all as f64);
    part / all * 100.0
}

/// Warm colors, the same for the same name; the kernel's are orange.
fn color(name: &str, kind: CodeKind) -> [u8; 3] {
    let sum = name.bytes().fold(0u32, |sum, b| {
        sum.wrapping_mul(31).wrapping_add(u32::from(b))
    });
    let vary = |shift: u32, span: u32| {
        u8::try_from(sum >> shift & 0xff)
            .map_or(0, |n| u8::try_from(u32::from(n) * span / 255).unwrap_or(0))
    };
    match kind {
        CodeKind::Kernel => [230 + vary(0, 25), 130 + vary(8, 50), vary(16, 40)],
        CodeKind::User | CodeKind::Unknown => [205 + vary(0, 50), 60 + vary(8, 120), vary(16, 55)],
    }
}

/// Red for a larger share than before, blue for a smaller one, white for the same.
fn difference_color(tree: &Tree, node: &Node) -> [u8; 3] {
    let [all, all_before] = tree.nodes[0].total;
    let change = percent(node.total[0], all) - percent(node.total[1], all_before);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 200"
    )]
    let fade = 255 - (change.abs().sqrt() * 40.0).min(200.0) as u8;
    if change > 0.0 {
        [255, fade, fade]
    } else {
        [fade, fade, 255]
    }
}
